"""The ports of a platform: chosen once, kept, and checked again before each start."""

from __future__ import annotations

import socket

NAMES = (
    "api",
    "etcd",
    "etcd-peers",
    "controller-manager",
    "scheduler",
    "kwok",
    "registry",
    "desk",
    "operator",
)
"""All but `http`, which a person may choose."""

HTTP = 8080


def choose(address: str, taken: set[int]) -> int:
    """A free port. The kernel hands out another one each time, so two platforms that start at once do not meet."""
    while True:
        with socket.socket() as probe:
            probe.bind((address, 0))
            port = probe.getsockname()[1]
        if port not in taken:
            return port


def free(address: str, port: int) -> bool:
    with socket.socket() as probe:
        # As servers do: a port whose last connections are only fading away is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True

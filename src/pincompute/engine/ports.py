"""The ports of a platform: chosen once, kept, and looked at again before each start."""

from __future__ import annotations

import errno
import random
import socket
from collections.abc import Iterable, Mapping

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import PORT_IN_USE
from pincompute.engine import proc
from pincompute.engine.home import Home
from pincompute.engine.processes import Process, heirs, marked

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
    "kubeflow",
    "kubeflow-webhook",
    "storage",
    "log-store",
    "log-store-pods",
    "signer",
)
"""All but `http`, which a person may choose."""

HTTP = 8080

# Below those that the kernel hands to outgoing connections: one of these could take a port while its server is down.
_RANGE = range(20000, 32000)


def choose(taken: Mapping[str, int], http: int | None) -> dict[str, int]:
    """A port for each name: those that were taken before stay."""
    chosen = dict(taken)
    for name in NAMES:
        if name not in chosen:
            chosen[name] = _unused(set(chosen.values()))
    if http is not None:
        chosen["http"] = http
    elif "http" not in chosen:
        chosen["http"] = HTTP if free("127.0.0.1", HTTP) else _unused(set(chosen.values()))
    return chosen


def require_free(address: str, port: int, part: str, home: Home, leaders: Iterable[Process]) -> None:
    """Nobody but the platform itself may listen there: what changed or strayed is ended before it starts anew."""
    if free(address, port):
        return
    listener = proc.listener(port)
    if listener in {process.pid for process in (*marked(home), *heirs(home, leaders))}:
        return
    by = f" by {proc.name(listener)} (pid {listener})" if listener else ""
    raise Refused(
        Problem(
            PORT_IN_USE,
            f"port {port}, which {part} needs, is in use{by}",
            next=f"end it, or pin up --name {home.name} --http-port {port + 1}" if part == "ingress" else "end it",
        )
    )


def free(address: str, port: int) -> bool:
    with socket.socket() as probe:
        # As servers do: a port whose last connections are only fading away is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            # An address that the machine does not have yet cannot be in use either.
            return error.errno != errno.EADDRINUSE
    return True


def _unused(taken: set[int]) -> int:
    while True:
        # At random, so that two platforms that start at once hardly meet; nothing secret hangs on it.
        port = random.choice(_RANGE)  # noqa: S311
        if port not in taken and free("", port):
            return port

"""Ports of a platform: chosen once, recorded, and checked before each start."""

from __future__ import annotations

import errno
import random
import socket
from collections.abc import Collection, Iterable, Mapping

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import PORT_IN_USE
from pincompute.engine import proc
from pincompute.engine.home import Home
from pincompute.engine.processes import Process, find_descendants, find_detached, find_marked

PORT_NAMES = (
    "api",
    "etcd",
    "etcd-peers",
    "controller-manager",
    "scheduler",
    "kwok",
    "registry",
    "registry-writes",
    "desk",
    "desk-metrics",
    "insight",
    "operator",
    "kubeflow",
    "kubeflow-webhook",
    "prometheus",
    "metrics",
    "storage",
    "log-store",
    "log-store-pods",
    "secret-store",
    "secret-store-pods",
    "config-store",
    "config-store-pods",
    "signer",
    "zookeeper",
    "registrar",
    "registrar-pods",
    "https",
)
"""All but `http`, which is an option of `pin up`."""

DEFAULT_HTTP_PORT = 8080

# Below the ephemeral range: an outgoing connection could take a port of that range while its server is down.
_RANGE = range(20000, 32000)


def choose_ports(taken: Mapping[str, int], http: int | None, of_others: Collection[int] = ()) -> dict[str, int]:
    """Assign a port to each name; recorded assignments are kept.

    Other platforms may not listen on their HTTP ports yet, or at present.
    """
    chosen = dict(taken)
    for name in PORT_NAMES:
        if name not in chosen:
            chosen[name] = _unused(set(chosen.values()))
    if http is not None:
        chosen["http"] = http
    elif "http" not in chosen:
        default_is_free = DEFAULT_HTTP_PORT not in of_others and is_free("127.0.0.1", DEFAULT_HTTP_PORT)
        chosen["http"] = DEFAULT_HTTP_PORT if default_is_free else _unused({*chosen.values(), *of_others})
    return chosen


def require_free(address: str, port: int, part: str, home: Home, leaders: Iterable[Process]) -> None:
    """Reject a port on which a foreign process listens.

    The platform's own processes are no conflict: the converger keeps or stops them later.
    """
    if is_free(address, port):
        return
    listener = proc.listener_pid(port)
    ours = (*find_marked(home), *find_descendants(home, leaders), *find_detached(home))
    if listener in {process.pid for process in ours}:
        return
    by = f" by {proc.program_name(listener)} (pid {listener})" if listener else ""
    raise Refused(
        Problem(
            PORT_IN_USE,
            f"port {port} of {part} is in use{by}",
            next=f"stop that process, or pin up --name {home.name} --http-port {port + 1}"
            if part == "ingress"
            else "stop that process, then run the same command again",
        )
    )


def is_free(address: str, port: int) -> bool:
    with socket.socket() as probe:
        # SO_REUSEADDR as servers set it: a port with connections in TIME_WAIT only is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            # EADDRNOTAVAIL: the machine does not have the address yet, so the port on it is free.
            return error.errno != errno.EADDRINUSE
    return True


def _unused(taken: set[int]) -> int:
    while True:
        # Random, so that two platforms that start at the same time rarely collide; not security-relevant.
        port = random.choice(_RANGE)  # noqa: S311
        if port not in taken and is_free("", port):
            return port

"""Reports in the status of an Ingress which of its hosts are served, as other ingress controllers do.

A host that another Ingress has is reported with an error, so that its owner learns why it leads elsewhere. Which other
Ingress it is stays untold, because it may belong to another project.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from pincompute.agents.routes import Ingress, RouteConflict
from pincompute.api.hosts import normalize_host
from pincompute.api.names import GROUP, NAME_PREFIX
from pincompute.kube.client import Client
from pincompute.kube.resource import INGRESSES

MAX_REPORTED_HOSTS = 16
"""Bounds the status of an Ingress with many rules. Ours have one host."""
TAKEN_ERROR = f"{GROUP}/HostTaken"
INGRESS_MANAGER = f"{NAME_PREFIX}ingress"

Point = dict[str, Any]
"""An entry of `status.loadBalancer.ingress`."""


def port_of(listen: str) -> int:
    return int(listen.rpartition(":")[2])


def served_points(ingress: Ingress, taken: Collection[str], port: int) -> list[Point]:
    """The hosts of an Ingress, sorted. Hosts with a wildcard are no host names, which the API server would refuse."""
    hosts = sorted({normalize_host(rule.host) for rule in ingress.spec.rules if rule.host and "*" not in rule.host})
    return [_point(host, port, taken) for host in hosts[:MAX_REPORTED_HOSTS]]


def changed_points(
    ingresses: Iterable[Ingress], conflicts: Iterable[RouteConflict], port: int
) -> Iterator[tuple[Ingress, list[Point]]]:
    """The Ingresses with another status than they should have."""
    taken: defaultdict[str, set[str]] = defaultdict(set)
    for conflict in conflicts:
        taken[conflict.ingress].add(conflict.host)
    for ingress in ingresses:
        name = f"{ingress.metadata.namespace}/{ingress.metadata.name}"
        points = served_points(ingress, taken.get(name, ()), port)
        if points != ingress.status.load_balancer.ingress:
            yield ingress, points


async def write_points(client: Client, ingress: Ingress, points: list[Point]) -> None:
    metadata = ingress.metadata
    body = {"status": {"loadBalancer": {"ingress": points}}}
    await client.patch(
        INGRESSES, metadata.name, metadata.namespace, body, style="merge", manager=INGRESS_MANAGER, subresource="status"
    )


def _point(host: str, port: int, taken: Collection[str]) -> Point:
    error = {"error": TAKEN_ERROR} if host in taken else {}
    return {"hostname": host, "ports": [{"port": port, "protocol": "TCP", **error}]}

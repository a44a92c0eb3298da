"""What pods have whose programs answer: their ports, the check that says they may be asked, and a way to end."""

from __future__ import annotations

from collections.abc import Sequence

from pincompute.api.serving import PORT_NAME, HealthCheck, Port, Shutdown
from pincompute.objects.content import Object


def container_ports(port: int, ports: Sequence[Port]) -> list[Object]:
    return [
        {"name": PORT_NAME, "containerPort": port, "protocol": "TCP"},
        *({"name": each.name, "containerPort": each.port, "protocol": each.protocol} for each in ports),
    ]


def service_ports(port: int, target: int, ports: Sequence[Port]) -> list[Object]:
    """The main one may have another number for its clients; the others are reached as they are."""
    return [
        {"name": PORT_NAME, "port": port, "targetPort": target, "protocol": "TCP"},
        *({"name": each.name, "port": each.port, "targetPort": each.port, "protocol": each.protocol} for each in ports),
    ]


def probe(port: int, check: HealthCheck) -> Object:
    how: Object = {"httpGet": {"path": check.path, "port": port}} if check.path else {"tcpSocket": {"port": port}}
    return {**how, "periodSeconds": check.seconds, "failureThreshold": check.failures}


def leaving(shutdown: Shutdown) -> Object:
    """It leaves the traffic before it ends: every proxy has heard of it by then."""
    return {"preStop": {"sleep": {"seconds": shutdown.leave_seconds}}}


def grace(shutdown: Shutdown) -> int:
    return shutdown.leave_seconds + shutdown.grace_seconds

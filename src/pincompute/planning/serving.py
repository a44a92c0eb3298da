"""What kinds that answer share: ports, the check that a copy may be asked, a way to end, and two conditions."""

from __future__ import annotations

from collections.abc import Sequence

from pincompute.api.pod import main_container
from pincompute.api.service import PinterestService
from pincompute.api.serving import PORT_NAME, HealthCheck, Port, Shutdown
from pincompute.api.stateful_set import PinterestStatefulSet
from pincompute.api.status import AVAILABLE, READY, Condition, Progress
from pincompute.base import reasons
from pincompute.base.problem import Problem
from pincompute.objects.content import Object
from pincompute.planning import status
from pincompute.planning.snapshot import Snapshot


def container_ports(port: int, ports: Sequence[Port], main: str = PORT_NAME) -> list[Object]:
    return [
        {"name": main, "containerPort": port, "protocol": "TCP"},
        *({"name": each.name, "containerPort": each.port, "protocol": each.protocol} for each in ports),
    ]


def service_ports(owner: PinterestService | PinterestStatefulSet, port: int, main: str = PORT_NAME) -> list[Object]:
    """The main one may have another number for its clients; the others are reached as they are."""
    spec = owner.spec
    return [
        {"name": main, "port": port, "targetPort": _target(owner, spec.port, main), "protocol": "TCP"},
        *(
            {"name": each.name, "port": each.port, "targetPort": _target(owner, each.port, each.name),
             "protocol": each.protocol}
            for each in spec.ports
        ),
    ]  # fmt: skip


def _target(owner: PinterestService | PinterestStatefulSet, port: int, name: str) -> str | int:
    """By name: copies of two revisions may listen on two numbers. A template may give it another name, or none."""
    main = main_container(owner.spec.template, owner.main, own=bool(owner.spec.image)) or {}
    if "ports" not in main:
        return name
    named = (each.get("name") for each in main["ports"] if each.get("containerPort") == port)
    return next((each for each in named if each), port)


def probe(port: int, check: HealthCheck) -> Object:
    how: Object = {"httpGet": {"path": check.path, "port": port}} if check.path else {"tcpSocket": {"port": port}}
    return {**how, "periodSeconds": check.seconds, "failureThreshold": check.failures}


def leaving(shutdown: Shutdown) -> Object:
    """It leaves the traffic before it ends: every proxy has heard of it by then."""
    return {"preStop": {"sleep": {"seconds": shutdown.leave_seconds}}}


def grace(shutdown: Shutdown) -> int:
    return shutdown.leave_seconds + shutdown.grace_seconds


def ready(snapshot: Snapshot, progress: Progress, why: Problem | None, beside: str = "") -> Condition:
    """That every copy is as wanted and answers."""
    if progress.ready == progress.wanted:
        message = f"{progress.ready} of {progress.wanted} copies answer{beside}"
        return status.said(snapshot, READY, reasons.AVAILABLE, message, status=True)
    if why:
        return status.said(snapshot, READY, why.reason, why.message(), status=False)
    message = f"{progress.ready} of {progress.wanted} copies answer so far"
    return status.said(snapshot, READY, reasons.PROGRESSING, message, status=False)


def available(snapshot: Snapshot, wanted: int, answering: int) -> Condition:
    """That somebody answers, be it a former revision: what a person who only uses it feels."""
    enough = answering > 0 or wanted == 0
    reason = reasons.AVAILABLE if enough else reasons.PROGRESSING
    return status.said(snapshot, AVAILABLE, reason, f"{answering} copies of any revision answer", status=enough)

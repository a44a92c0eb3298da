"""Shared by the kinds that serve requests: ports, readiness probe, shutdown, and the conditions Ready and Available."""

from __future__ import annotations

from collections.abc import Sequence

from pincompute.api.pod_template import main_container
from pincompute.api.service import PinterestService
from pincompute.api.serving import HTTP_PORT_NAME, HealthCheck, Port, Shutdown
from pincompute.api.stateful_set import PinterestStatefulSet
from pincompute.api.status import AVAILABLE, READY, Condition, Progress
from pincompute.base import reasons
from pincompute.base.problem import Problem
from pincompute.objects.content import Object
from pincompute.planning import status
from pincompute.planning.observed_pods import Pod
from pincompute.planning.snapshot import Snapshot


def container_ports(port: int, ports: Sequence[Port], main: str = HTTP_PORT_NAME) -> list[Object]:
    return [
        {"name": main, "containerPort": port, "protocol": "TCP"},
        *({"name": each.name, "containerPort": each.port, "protocol": each.protocol} for each in ports),
    ]


def service_ports(
    owner: PinterestService | PinterestStatefulSet, port: int, main: str = HTTP_PORT_NAME
) -> list[Object]:
    """Ports of the Service. The main one may differ from the container's port; all others are the same."""
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
    """Target port by name, because replicas of two revisions may listen on different ports.

    If the template lists the port itself, under another name or none, that name or the number is used.
    """
    main = main_container(owner.spec.template, owner.main_container_name, own=bool(owner.spec.image)) or {}
    if "ports" not in main:
        return name
    named = (each.get("name") for each in main["ports"] if each.get("containerPort") == port)
    return next((each for each in named if each), port)


def readiness_probe(port: int, check: HealthCheck) -> Object:
    handler: Object = {"httpGet": {"path": check.path, "port": port}} if check.path else {"tcpSocket": {"port": port}}
    return {**handler, "periodSeconds": check.seconds, "failureThreshold": check.failures}


def pre_stop_hook(shutdown: Shutdown) -> Object:
    """Delays termination until all proxies have removed the pod from their endpoints."""
    return {"preStop": {"sleep": {"seconds": shutdown.leave_seconds}}}


def termination_grace_s(shutdown: Shutdown) -> int:
    return shutdown.leave_seconds + shutdown.grace_seconds


def ready_condition(  # noqa: PLR0913  (the last two are optional)
    snapshot: Snapshot,
    progress: Progress,
    pods: Sequence[Pod],
    why: Problem | None,
    remark: str = "",
    *,
    awaited: str = "",
) -> Condition:
    """True if all replicas are up to date and ready, and clients find them. `pods` are those of all revisions."""
    message = f"{progress.ready} of {progress.wanted} replicas ready"
    if why:
        return status.build_condition(snapshot, READY, why.reason, why.message(), status=False)
    if progress.ready == progress.wanted:
        if awaited:
            return status.build_condition(snapshot, READY, reasons.PROGRESSING, f"{message}; {awaited}", status=False)
        return status.build_condition(snapshot, READY, reasons.AVAILABLE, f"{message}{remark}", status=True)
    serving = sum(pod.ready for pod in pods)
    message = f"{message} so far"
    if serving > progress.ready:
        message = f"{serving} of {progress.wanted} replicas ready ({progress.ready} new)"
    return status.build_condition(snapshot, READY, reasons.PROGRESSING, message, status=False)


def available_condition(snapshot: Snapshot, wanted: int, pods: Sequence[Pod]) -> Condition:
    """True if at least one replica of any revision is ready, which is all that a client of the service notices."""
    ready = sum(pod.ready for pod in pods)
    enough = ready > 0 or wanted == 0
    reason = reasons.AVAILABLE if enough else reasons.PROGRESSING
    return status.build_condition(snapshot, AVAILABLE, reason, f"{ready} replicas of any revision ready", status=enough)

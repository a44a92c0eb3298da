"""Running containers that are not ready: probes that fail, and readiness gates that stay closed."""

from __future__ import annotations

from pincompute.api.service import PinterestService
from pincompute.api.serving import HealthCheck
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem
from pincompute.base.reasons import HEALTH_CHECK_FAILED, PORT_NOT_LISTENING, PROBE_FAILED, READINESS_GATE_CLOSED
from pincompute.objects.content import Object
from pincompute.planning.diagnosis.cause import (
    Cause,
    Causes,
    PodContext,
    Rank,
    Recheck,
    is_main_container,
    template_container,
)
from pincompute.planning.diagnosis.excerpts import excerpt_start, format_duration
from pincompute.planning.kinds.serving import readiness_probe
from pincompute.planning.observed_pods import ContainerStatus, Running

SILENCE_GRACE_S = 15.0
"""Time that a program has to become ready after its start, if its probes do not allow more."""


def check_probes(context: PodContext) -> Causes:
    for container in _probed_containers(context):
        if container.state.running is None or container.ready:
            continue
        has_startup_probe = template_container(context.owner, container.name).get("startupProbe")
        probe = "startupProbe" if container.started is False and has_startup_probe else "readinessProbe"
        yield from _unready_container(context, container, container.state.running, probe)
    yield from _closed_readiness_gates(context)


def _probed_containers(context: PodContext) -> tuple[ContainerStatus, ...]:
    """Containers that should become ready. Init containers count only after initialization, when only sidecars run."""
    pod = context.pod
    return context.containers if pod.has_condition("Initialized") else tuple(pod.status.container_statuses)


def _effective_probe(owner: Workload, name: str, probe: str) -> Object:
    """The probe of the template, or else the readiness probe that the short form implies for a port."""
    in_template = template_container(owner, name).get(probe)
    port = getattr(owner.spec, "port", 0)
    if in_template or probe != "readinessProbe" or not port or not is_main_container(owner, name):
        return in_template or {}
    return readiness_probe(port, _health_check(owner))


def _health_check(owner: Workload) -> HealthCheck:
    if isinstance(owner, PinterestService):
        return owner.spec.load_balancer.health_check
    return getattr(owner.spec, "health_check", HealthCheck())


def _unready_container(context: PodContext, container: ContainerStatus, running: Running, probe: str) -> Causes:
    settings = _effective_probe(context.owner, container.name, probe)
    grace_s = max(SILENCE_GRACE_S, _probe_grace_s(settings, probe))
    age_s = context.seconds_since(running.started_at)
    if age_s < grace_s:
        yield Recheck(grace_s - age_s)
        return
    problem = _probe_problem(context, container, probe, settings, format_duration(grace_s))
    yield context.container_cause(container, problem, Rank.TRANSIENT)


def _probe_grace_s(settings: Object, probe: str) -> float:
    """Time that the probe itself allows; only the failure threshold of a startup probe is meant as such a time."""
    attempts = settings.get("failureThreshold", 3) if probe == "startupProbe" else 3
    if not settings:
        return 0.0
    return float(settings.get("initialDelaySeconds", 0) + attempts * settings.get("periodSeconds", 10))


def _probe_problem(
    context: PodContext, container: ContainerStatus, probe: str, settings: Object, grace: str
) -> Problem:
    subject, logs = context.subject(container), context.logs_command(container)
    note = f"not ready {grace} after its start"
    if probe == "readinessProbe" and (http := settings.get("httpGet")):
        what = f"{subject} runs, but fails GET {http.get('path', '/')} on port {http.get('port')}"
        return Problem(HEALTH_CHECK_FAILED, what, note=note, next=f"correct the path or the port, or: {logs}")
    if probe == "readinessProbe" and (tcp := settings.get("tcpSocket")):
        what = f"{subject} runs, but does not listen on port {tcp.get('port')}"
        return Problem(PORT_NOT_LISTENING, what, note=note, next=f"correct the port, or: {logs}")
    what = f"{subject} runs, but its {probe} fails"
    return Problem(PROBE_FAILED, what, note=note, next=f"correct {probe} in the file, or: {logs}")


def _closed_readiness_gates(context: PodContext) -> Causes:
    """A readiness gate is opened by a controller outside of the pod, such as one that registers it for traffic."""
    for condition in context.pod.status.conditions:
        if condition.type != "Ready" or condition.reason != "ReadinessGatesNotReady":
            continue
        started = [each.state.running.started_at for each in context.containers if each.state.running]
        age_s = context.seconds_since(max(started, default=None))
        if age_s < SILENCE_GRACE_S:
            yield Recheck(SILENCE_GRACE_S - age_s)
            continue
        what = "the program is ready, but a readiness gate of its pod is closed"
        next_ = f"{context.gate_contact(condition.message)}, or: {context.show_command}"
        problem = Problem(READINESS_GATE_CLOSED, what, context.where, excerpt_start(condition.message), next_)
        yield Cause(problem, Rank.TRANSIENT)

"""A program that runs and is not asked: silent on its port, answering badly, or held back from outside."""

from __future__ import annotations

from pincompute.api.service import PinterestService
from pincompute.api.serving import HealthCheck
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem
from pincompute.base.reasons import GATE_CLOSED, HEALTH_CHECK_FAILED, PORT_SILENT, PROBE_FAILED
from pincompute.objects.content import Object
from pincompute.planning.serving import probe
from pincompute.planning.snapshot import Container, Running
from pincompute.planning.why.cause import Cause, Copy, Rank, Seen, Wait, given, is_main
from pincompute.planning.why.words import beginning, lasting

PATIENCE = 15.0
"""Seconds that a running program may take to answer before its silence is told."""


def look(copy: Copy) -> Seen:
    for each in _asked(copy):
        if each.state.running is None or each.ready:
            continue
        which = (
            "startupProbe"
            if each.started is False and given(copy.owner, each.name).get("startupProbe")
            else "readinessProbe"
        )
        yield from _silent(copy, each, each.state.running, which)
    yield from _gate(copy)


def _asked(copy: Copy) -> tuple[Container, ...]:
    """What only prepares is never ready; what runs on when all is prepared is a part beside the program."""
    return copy.containers if copy.pod.says("Initialized") else tuple(copy.pod.status.container_statuses)


def _probe(owner: Workload, name: str, which: str) -> Object:
    """As the template says it, or the short form of a kind that answers."""
    said = given(owner, name).get(which)
    port = getattr(owner.spec, "port", 0)
    if said or which != "readinessProbe" or not port or not is_main(owner, name):
        return said or {}
    return probe(port, _health_check(owner))


def _health_check(owner: Workload) -> HealthCheck:
    if isinstance(owner, PinterestService):
        return owner.spec.load_balancer.health_check
    return getattr(owner.spec, "health_check", HealthCheck())


def _silent(copy: Copy, container: Container, running: Running, which: str) -> Seen:
    asks = _probe(copy.owner, container.name, which)
    patience = max(PATIENCE, _allowed(asks, which))
    age = copy.age(running.started_at)
    if age < patience:
        yield Wait(patience - age)
        return
    yield copy.cause(container, _told(copy, container, which, asks, lasting(patience)), Rank.SLOW)


def _allowed(asks: Object, which: str) -> float:
    """Seconds that whoever wrote the probe has given it; that of a start says how often it may fail."""
    times = asks.get("failureThreshold", 3) if which == "startupProbe" else 3
    return float(asks.get("initialDelaySeconds", 0) + times * asks.get("periodSeconds", 10)) if asks else 0.0


def _told(copy: Copy, container: Container, which: str, asks: Object, patience: str) -> Problem:
    runs, logs, note = f"{copy.subject(container)} runs, but", copy.logs(container), f"it was given {patience}"
    if which == "readinessProbe" and (http := asks.get("httpGet")):
        what = f"{runs} does not answer well to GET {http.get('path', '/')} on its port {http.get('port')}"
        mend = f"correct the path or the port, or see what it says: {logs}"
        return Problem(HEALTH_CHECK_FAILED, what, note=note, next=mend)
    if which == "readinessProbe" and (tcp := asks.get("tcpSocket")):
        what = f"{runs} nothing listens on its port {tcp.get('port')}"
        return Problem(PORT_SILENT, what, note=note, next=f"correct the port, or see what it says: {logs}")
    what = f"{runs} its {which} does not succeed"
    return Problem(PROBE_FAILED, what, note=note, next=f"correct {which} in the file, or see what it says: {logs}")


def _gate(copy: Copy) -> Seen:
    """Somebody outside the pod has a say in whether it is asked, such as traffic."""
    for each in copy.pod.status.conditions:
        if each.type == "Ready" and each.reason == "ReadinessGatesNotReady":
            began = [one.state.running.started_at for one in copy.containers if one.state.running]
            age = copy.age(max(began, default=None))
            if age < PATIENCE:
                yield Wait(PATIENCE - age)
                continue
            what = "the program answers, but something outside it has not let it be asked"
            next_ = f"{copy.opener(each.message)}, or: {copy.describe}"
            yield Cause(Problem(GATE_CLOSED, what, copy.where, beginning(each.message), next_), Rank.SLOW)

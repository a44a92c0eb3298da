"""Why a service does not answer: the first cause, with its evidence and what to type next."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import (
    CRASH_LOOP,
    IMAGE_PULL_FAILED,
    PORT_SILENT,
    RUNS_AS_ROOT,
    START_FAILED,
    UNSCHEDULABLE,
)
from pincompute.planning.snapshot import Container, Pod, Snapshot

PATIENCE = 15.0
"""Seconds that a running program may take to listen before its silence is told."""


class Finding(NamedTuple):
    problem: Problem | None = None
    look_again: float | None = None


def first_cause(snapshot: Snapshot, pods: tuple[Pod, ...]) -> Finding:
    """The most telling cause over all pods: what can never end well is told before what may only be slow."""
    owner, now = snapshot.owner, snapshot.now
    findings = [look(owner, pod, now) for look in (_pull, _start, _crash, _place, _listen) for pod in pods]
    problem = next((each.problem for each in findings if each.problem), None)
    again = min((each.look_again for each in findings if each.look_again is not None), default=None)
    return Finding(problem, again)


def _pull(owner: Workload, pod: Pod, _now: datetime) -> Finding:
    return _waiting(pod, {"ImagePullBackOff", "ErrImagePull", "InvalidImageName"}, lambda each, message: Problem(
        IMAGE_PULL_FAILED, f"the image {each.image} cannot be fetched", _at(pod, each), message,
        f"correct the image in the file, or: pin image load FILE --as {each.image}",
    ))  # fmt: skip


def _start(owner: Workload, pod: Pod, _now: datetime) -> Finding:
    def tell(each: Container, message: str) -> Problem:
        if "runAsNonRoot" in message:
            return Problem(
                RUNS_AS_ROOT, f"the image {each.image} wants to run as root", _at(pod, each), message,
                "add a line such as USER 1000 to its Containerfile",
            )  # fmt: skip
        return Problem(START_FAILED, "the container cannot be started", _at(pod, each), message)

    return _waiting(pod, {"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}, tell)


def _crash(owner: Workload, pod: Pod, _now: datetime) -> Finding:
    def tell(each: Container, _message: str) -> Problem:
        ended = each.last_state.terminated
        how = f"with exit code {ended.exit_code} ({ended.reason})" if ended else "at once"
        return Problem(
            CRASH_LOOP, f"the program ended {each.restart_count + 1} times, last {how}", _at(pod, each),
            next=f"pin logs {owner.metadata.name}",
        )  # fmt: skip

    return _waiting(pod, {"CrashLoopBackOff"}, tell)


def _place(_owner: Workload, pod: Pod, _now: datetime) -> Finding:
    for each in pod.status.conditions:
        if each.type == "PodScheduled" and each.reason == "Unschedulable":
            return Finding(
                Problem(
                    UNSCHEDULABLE, "no node can take a copy", Where(object=f"pod {pod.metadata.name}"), each.message
                )
            )
    return Finding()


def _listen(owner: Workload, pod: Pod, now: datetime) -> Finding:
    for each in pod.status.container_statuses:
        if each.ready or each.state.running is None:
            continue
        running = (now - each.state.running.started_at).total_seconds()
        if running < PATIENCE:
            return Finding(look_again=PATIENCE - running)
        return Finding(
            Problem(
                PORT_SILENT,
                f"the program runs, but nothing listens on its port {owner.spec.port}",
                _at(pod, each),
                f"it was given {PATIENCE:.0f} seconds",
                f"correct the port, or see what it says: pin logs {owner.metadata.name}",
            )
        )
    return Finding()


def _waiting(pod: Pod, reasons: set[str], tell: Callable[[Container, str], Problem]) -> Finding:
    for each in pod.status.container_statuses:
        waiting = each.state.waiting
        if waiting and waiting.reason in reasons:
            return Finding(tell(each, waiting.message))
    return Finding()


def _at(pod: Pod, container: Container) -> Where:
    return Where(object=f"pod {pod.metadata.name} container {container.name}")

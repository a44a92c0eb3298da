"""Diagnosis of a workload that is not as wanted: one first cause, its evidence, and the next command to run.

The checks read only the snapshot, so the operator runs them in every pass and writes their result into the status. Each
check looks at one phase in the life of a pod, or at the objects that create pods, and yields causes, or a `Recheck`
where it is too early to report one. `explain` combines the first cause with events and capacity figures, which are read
only when a user asks (`pin why`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from pincompute.base.problem import Problem
from pincompute.planning.diagnosis import (
    container_start,
    exits,
    failed_create,
    images,
    nodes,
    pod_startup,
    probes,
    scheduling,
    waiting,
)
from pincompute.planning.diagnosis.cause import Cause, PodCheck, PodContext, Rank, Recheck
from pincompute.planning.observed_pods import Pod
from pincompute.planning.snapshot import Snapshot

POD_CHECKS: tuple[PodCheck, ...] = (
    scheduling.check_scheduling,
    waiting.check_waiting,
    images.check_images,
    container_start.check_container_start,
    exits.check_exits,
    pod_startup.check_pod_startup,
    probes.check_probes,
    nodes.check_nodes,
)
"""Checks of a single pod, in the order of a pod's life. The position of a check is its stage."""


class Finding(NamedTuple):
    """The first cause, if there is any, and the time after which the checks could have another result."""

    problem: Problem | None = None
    recheck_after_s: float | None = None


class LocatedCause(NamedTuple):
    """A cause with the stage and the pod at which it was found; the pod is empty for causes outside of pods."""

    cause: Cause
    stage: int
    pod: str


def first_cause(snapshot: Snapshot, pods: tuple[Pod, ...]) -> Finding:
    """The most important cause: permanent before transient, and then the one that affects most pods.

    Equal causes of several pods are one cause: the message names the first pod and counts the others.
    """
    results = [*_object_results(snapshot), *_pod_results(snapshot, pods)]
    recheck_after_s = min((each.after_s for _, _, each in results if isinstance(each, Recheck)), default=None)
    groups: defaultdict[tuple[Rank, int, int, str], list[LocatedCause]] = defaultdict(list)
    for stage, pod, cause in results:
        if isinstance(cause, Cause):
            key = (cause.rank, cause.start_order, stage, cause.problem.reason.code)
            groups[key].append(LocatedCause(cause, stage, pod))
    if not groups:
        return Finding(None, recheck_after_s)
    first = min(groups.values(), key=_importance)
    return Finding(_group_problem(snapshot, first, len(pods)), recheck_after_s)


def _object_results(snapshot: Snapshot) -> Iterator[tuple[int, str, Cause | Recheck]]:
    """Results outside of single pods.

    Rejected pods come before all stages, since there is no pod to check then. Stuck deletions and the rollout deadline
    come last, because they only tell that time has passed.
    """
    for stage, check in (
        (-1, failed_create.check_failed_create),
        (len(POD_CHECKS), nodes.check_stuck_deletions),
        (len(POD_CHECKS) + 1, failed_create.check_rollout_deadline),
    ):
        yield from ((stage, "", result) for result in check(snapshot))


def _pod_results(snapshot: Snapshot, pods: tuple[Pod, ...]) -> Iterator[tuple[int, str, Cause | Recheck]]:
    """Results of all checks for the pods that are not ready."""
    for pod in pods:
        if pod.ready:
            continue
        context = PodContext(snapshot.owner, pod, snapshot.now, snapshot.runtimes)
        for stage, check in enumerate(POD_CHECKS):
            yield from ((stage, pod.metadata.name, result) for result in check(context))


def _importance(group: list[LocatedCause]) -> tuple[Rank, int, int, int, str, str]:
    """Sort key, the most important first. The name of the pod at the end makes the order total."""
    first = min(group, key=lambda each: each.pod)
    cause = first.cause
    return cause.rank, -len(group), cause.start_order, first.stage, cause.problem.reason.code, first.pod


def _group_problem(snapshot: Snapshot, group: list[LocatedCause], pod_count: int) -> Problem:
    """The problem of the first pod by name, with the number of affected pods."""
    first = min(group, key=lambda each: each.pod)
    problem = first.cause.problem
    if not first.pod or pod_count == 1:
        return problem
    return problem._replace(what=f"{problem.what} ({len(group)} of {pod_count} {snapshot.owner.REPLICA_NOUN[1]})")

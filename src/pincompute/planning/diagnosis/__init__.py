"""Diagnosis of a workload that is not as wanted: one first cause, its evidence, and the next command to run.

The checks read only the snapshot, so the operator runs them in every pass and writes their result into the status. Each
check yields causes, or a `Recheck` where it is too early to report one; the reason of a cause tells its vertex in the
causal graph (`graph`). `explain` combines the first cause with events and capacity figures, which are read only when a
user asks (`pin why`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

from pincompute.base import reasons
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
from pincompute.planning.diagnosis.cause import Cause, Causes, PodCheck, PodContext, Rank, Recheck
from pincompute.planning.diagnosis.graph import below, depth, vertex_of
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
"""Checks of a single pod. Their order plays no role."""
WORKLOAD_CHECKS: tuple[Callable[[Snapshot], Causes], ...] = (
    failed_create.check_failed_create,
    failed_create.check_rollout_deadline,
    nodes.check_stuck_deletions,
)
"""Checks outside of single pods."""


class Finding(NamedTuple):
    """The first cause, if there is any, and the time after which the checks could have another result."""

    problem: Problem | None = None
    recheck_after_s: float | None = None


class Blocked(NamedTuple):
    """A blocked vertex that nothing deeper explains, and the pod at which it was found; empty outside of pods."""

    cause: Cause
    pod: str = ""

    @property
    def vertex(self) -> str:
        return vertex_of(self.cause.problem.reason)

    def explains(self, other: Blocked) -> bool:
        """True if the other one needs this one: in the same pod, and in the same container unless this is the pod's."""
        container = self.cause.container
        return self.vertex in below(other.vertex) and container in {"", other.cause.container}


def first_cause(snapshot: Snapshot, pods: tuple[Pod, ...]) -> Finding:
    """The most important cause: permanent before transient, then the one that affects most pods, then the deepest.

    Equal causes of several pods are one cause: the message names the first pod and counts the others.
    """
    results = list(walk(snapshot, pods))
    recheck_after_s = min((each.after_s for each in results if isinstance(each, Recheck)), default=None)
    groups = _grouped(each for each in results if isinstance(each, Blocked))
    problem = _group_problem(snapshot, groups[0], len(pods)) if groups else None
    return Finding(problem, recheck_after_s)


_CRASHES_TOLD_AS = {reasons.REPLICA_FAILED: reasons.PROGRAM_FAILED}
"""A replica of a training job fails by its program, and others by losing their connection to it."""


def other_cause(snapshot: Snapshot, pods: tuple[Pod, ...], first: Problem) -> Problem | None:
    """The most important cause besides the first one that is independent of it; None if there is no other."""
    groups = _grouped(each for each in walk(snapshot, pods) if isinstance(each, Blocked))
    is_found = any(group[0].cause.problem.reason is first.reason for group in groups)
    for group in groups:
        cause, vertex = group[0].cause, group[0].vertex
        # A first cause that planning or an event refined is the same cause as the one at its vertex.
        is_first = cause.problem.reason in {first.reason, _CRASHES_TOLD_AS.get(first.reason)} or (
            not is_found and vertex == vertex_of(first.reason)
        )
        if not is_first and cause.rank is not Rank.SYMPTOM:
            return _group_problem(snapshot, group, len(pods))
    return None


def walk(snapshot: Snapshot, pods: tuple[Pod, ...]) -> Iterator[Blocked | Recheck]:
    """The blocked vertices that need no other blocked one, of the workload and of each pod that is not ready."""
    for check_workload in WORKLOAD_CHECKS:
        for result in check_workload(snapshot):
            yield Blocked(result) if isinstance(result, Cause) else result
    for pod in pods:
        if not pod.ready:
            yield from _walk_pod(PodContext(snapshot.owner, pod, snapshot.now, snapshot.runtimes))


def _walk_pod(context: PodContext) -> Iterator[Blocked | Recheck]:
    results = [result for check in POD_CHECKS for result in check(context)]
    name = context.pod.metadata.name
    blocked = [Blocked(each, name) for each in results if isinstance(each, Cause)]
    yield from (each for each in results if isinstance(each, Recheck))
    yield from (each for each in blocked if not any(other.explains(each) for other in blocked))


def _grouped(blocked: Iterator[Blocked]) -> list[list[Blocked]]:
    """Equal causes together, the most important first."""
    groups: defaultdict[tuple[Rank, int, str], list[Blocked]] = defaultdict(list)
    for each in blocked:
        groups[each.cause.rank, each.cause.start_order, each.cause.problem.reason.code].append(each)
    return sorted((sorted(each, key=lambda one: one.pod) for each in groups.values()), key=_importance)


def _importance(group: list[Blocked]) -> tuple[Rank, int, int, int, str, str]:
    """Sort key, the most important first. The name of the pod at the end makes the order total."""
    first = group[0]
    cause = first.cause
    return cause.rank, -len(group), cause.start_order, -depth(first.vertex), cause.problem.reason.code, first.pod


def _group_problem(snapshot: Snapshot, group: list[Blocked], pod_count: int) -> Problem:
    """The problem of the first pod by name, with the number of affected pods."""
    first = group[0]
    problem = first.cause.problem
    if not first.pod or pod_count == 1:
        return problem
    return problem._replace(what=f"{problem.what} ({len(group)} of {pod_count} {snapshot.owner.REPLICA_NOUN[1]})")

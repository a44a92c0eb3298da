"""Builds the parts of a status that are the same for all kinds."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pincompute.api.daemon import PinterestDaemon
from pincompute.api.names import WORKLOAD_LABEL
from pincompute.api.service import PinterestService
from pincompute.api.stateful_set import PinterestStatefulSet
from pincompute.api.status import SUCCEEDED, Condition, Progress, WorkloadStatus, find_condition
from pincompute.api.workload import Workload
from pincompute.base import reasons
from pincompute.base.problem import Problem
from pincompute.base.reasons import Reason
from pincompute.objects.times import format_time
from pincompute.planning.observed_pods import Pod
from pincompute.planning.plan import Plan
from pincompute.planning.pods.pod import BuiltTemplate, is_simulated
from pincompute.planning.revision_number import present_revision
from pincompute.planning.snapshot import Snapshot

_ServingWorkload = PinterestService | PinterestStatefulSet | PinterestDaemon


def active_pods_of(snapshot: Snapshot) -> tuple[Pod, ...]:
    """Pods of the workload, without those that have finished or are being deleted."""
    name = snapshot.owner.metadata.name
    return tuple(pod for pod in snapshot.pods if pod.workload == name and pod.is_active)


def pod_progress(wanted: int, pods: Sequence[Pod]) -> Progress:
    return Progress(
        wanted=wanted,
        scheduled=sum(pod.has_condition("PodScheduled") for pod in pods),
        started=sum(any(each.state.running for each in pod.status.container_statuses) for pod in pods),
        ready=sum(pod.ready for pod in pods),
    )


def build_condition(snapshot: Snapshot, type_: str, reason: Reason, message: str, *, status: bool | None) -> Condition:
    """Build a condition; status None is Unknown. The transition time stays unless the status changes."""
    owner = snapshot.owner
    status_text = {True: "True", False: "False", None: "Unknown"}[status]
    before = find_condition(owner.status.conditions, type_)
    same = before is not None and before.status == status_text
    return Condition(
        type=type_,
        status=status_text,
        reason=reason.code,
        message=message,
        last_transition_time=before.last_transition_time if before and same else format_time(snapshot.now),
        observed_generation=owner.metadata.generation,
    )


def paused_problem(owner: _ServingWorkload) -> Problem | None:
    """Problem that names the author of a pause; None if the rollout is not paused."""
    if not owner.spec.rollout.paused:
        return None
    return Problem(
        reasons.PAUSED, f"rollout paused by {owner.spec.rollout.paused}", next=f"pin resume {owner.metadata.name}"
    )


def has_ended(owner: Workload) -> bool:
    """True if work that ends has succeeded or failed in its present generation."""
    goal = find_condition(owner.status.conditions, owner.GOAL)
    is_current = owner.status.observed_generation >= owner.metadata.generation
    return owner.GOAL == SUCCEEDED and is_current and goal is not None and goal.status != "Unknown"


def common_status(snapshot: Snapshot, built: BuiltTemplate, pods: Sequence[Pod], why: Problem | None) -> WorkloadStatus:
    """Status fields that all workloads share. Each kind replaces those that it computes in another way."""
    owner: Workload = snapshot.owner
    revision = present_revision(snapshot)
    return WorkloadStatus(
        observed_generation=owner.metadata.generation,
        revision=revision.number,
        content=revision.content,
        runtime=built.runtime,
        parts=list(built.parts),
        replicas=len(pods),
        ready_replicas=sum(pod.ready for pod in pods),
        updated_in_place=sum(pod.updated_in_place and pod.parts == built.parts for pod in pods),
        selector=f"{WORKLOAD_LABEL}={owner.metadata.name}",
        simulated=is_simulated(owner, snapshot.cluster),
        next=why.next if why else "",
    )


def refused_plan(snapshot: Snapshot, problems: tuple[Problem, ...]) -> Plan:
    """Plan for a workload that cannot be planned: no step is taken, and running pods stay."""
    owner, first = snapshot.owner, problems[0]
    counted = _refused_counts(snapshot) if isinstance(owner, _ServingWorkload) else owner.status
    goal = build_condition(snapshot, owner.GOAL, first.reason, first.message(), status=False)
    others = [each for each in owner.status.conditions if each.type != owner.GOAL]
    revision = present_revision(snapshot)
    status = msgspec.structs.replace(
        counted,
        observed_generation=owner.metadata.generation,
        revision=revision.number,
        content=revision.content,
        next=first.next,
        conditions=[goal, *others],
    )
    return Plan((), status, why=first, problems=problems)


def _refused_counts(snapshot: Snapshot) -> WorkloadStatus:
    """Status with the present pods. They are of former revisions if the refused one has never been planned."""
    owner: _ServingWorkload = snapshot.owner
    pods, before = active_pods_of(snapshot), owner.status
    if before.progress and before.revision != present_revision(snapshot).number:
        before = msgspec.structs.replace(before, progress=Progress(wanted=before.progress.wanted))
    return msgspec.structs.replace(before, replicas=len(pods), ready_replicas=sum(pod.ready for pod in pods))

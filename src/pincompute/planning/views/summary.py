"""Summary of a workload from its status: counts, the most important condition, and whether it has failed."""

from __future__ import annotations

import msgspec

from pincompute.api.status import (
    EXPIRED,
    EXPIRES_SOON,
    HOST_UNLISTED,
    OUTDATED,
    READY,
    SUCCEEDED,
    UNREVIEWED,
    Condition,
    Progress,
    find_condition,
)
from pincompute.api.workload import Workload
from pincompute.api.workload_summary import WorkloadSummary
from pincompute.base.reasons import (
    CRASH_LOOP,
    KILLED,
    OUT_OF_MEMORY,
    PROGRAM_FAILED,
    REASONS,
    ROLLOUT_BLOCKED,
    Actor,
    find_reason,
)
from pincompute.planning.revision_number import expected_revision

_RETRIED_REASONS = {each.code for each in (CRASH_LOOP, KILLED, OUT_OF_MEMORY, PROGRAM_FAILED)}
"""Exits of a single task, which may still be retried."""
_OK_REASONS = frozenset(code for code, reason in REASONS.items() if not reason.is_problem)


def summarize(workload: Workload) -> WorkloadSummary:
    """The summary; before the operator has observed the newest generation only that it was submitted."""
    status = workload.status
    goal = find_condition(status.conditions, workload.GOAL)
    if status.observed_generation < workload.metadata.generation or goal is None:
        return _submitted_summary(workload)
    ready, wanted = workload.progress_counts
    condition = _most_important_condition(status.conditions, goal)
    return msgspec.structs.replace(
        _submitted_summary(workload),
        revision=status.revision,
        attempt=workload.attempt,
        ready=ready,
        wanted=wanted,
        done=goal.status == "True",
        failed=_has_failed(workload, goal),
        reason=condition.reason,
        message=condition.message,
        next=status.next,
        progress=status.progress or Progress(),
        simulated=status.simulated,
    )


def _most_important_condition(conditions: list[Condition], goal: Condition) -> Condition:
    """The goal if it has a problem; else a secondary condition such as an outdated runtime or a missing review.

    While the goal is not reached yet, a secondary condition replaces it only if that one is a problem itself.
    """
    types = (EXPIRED, OUTDATED, UNREVIEWED, HOST_UNLISTED, EXPIRES_SOON)
    secondary = filter(None, (find_condition(conditions, each) for each in types))
    relevant = (each for each in secondary if each.reason not in _OK_REASONS or goal.status == "True")
    return next(relevant, goal) if goal.reason in _OK_REASONS else goal


def _submitted_summary(workload: Workload) -> WorkloadSummary:
    metadata = workload.metadata
    ready, wanted = _counts_before_observation(workload)
    return WorkloadSummary(
        kind=workload.kind,
        project=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        generation=metadata.generation,
        revision=expected_revision(workload).number,
        goal=workload.GOAL,
        ready=ready,
        wanted=wanted,
        image=workload.spec.image,
        address=workload.status.address,
        expires=workload.status.expires,
    )


def _counts_before_observation(workload: Workload) -> tuple[int, int]:
    """The counts of a generation that the operator has not observed: replicas of former revisions keep serving."""
    if workload.GOAL != READY:
        return msgspec.structs.replace(workload, status=type(workload.status)()).progress_counts
    ready, wanted = workload.progress_counts
    return ready, getattr(workload.spec, "replicas", wanted)


def _has_failed(workload: Workload, goal: Condition) -> bool:
    """True if only the user can fix the problem, or if work that ends has ended without reaching its goal."""
    if goal.status == "True":
        return False
    if workload.GOAL == SUCCEEDED:
        if goal.status == "False":
            return True
        if goal.reason in _RETRIED_REASONS or workload.failure_is_partial:
            return False
    reason = find_reason(goal.reason)
    # The operator itself recreates a failing old replica that blocks a rollout, unless the file forbids it.
    return reason is not None and reason.actor is Actor.USER and reason is not ROLLOUT_BLOCKED

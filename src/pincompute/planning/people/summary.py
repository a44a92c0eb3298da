"""A workload in the few words that a person needs, by what its status says."""

from __future__ import annotations

import msgspec

from pincompute.api.status import OUTDATED, SUCCEEDED, UNREVIEWED, Condition, Progress, condition
from pincompute.api.summary import Summary
from pincompute.api.workload import Workload
from pincompute.base.reasons import (
    CRASH_LOOP,
    KILLED,
    OUT_OF_MEMORY,
    PROGRAM_FAILED,
    REASONS,
    ROLLOUT_BLOCKED,
    Who,
)

_TRIED_AGAIN = {each.code for each in (CRASH_LOOP, KILLED, OUT_OF_MEMORY, PROGRAM_FAILED)}
"""How one program of many may end, before it is known what becomes of the work."""
_WELL = frozenset(code for code, each in REASONS.items() if each.http == 200)
"""Why nothing need be done."""


def summarize(workload: Workload) -> Summary:
    """What is known; while the operator has not yet looked at the newest revision, that is only that it exists."""
    status = workload.status
    goal = condition(status.conditions, workload.GOAL)
    if status.observed_generation < workload.metadata.generation or goal is None:
        return _submitted(workload)
    ready, wanted = workload.counted
    first = _first(status.conditions, goal)
    return msgspec.structs.replace(
        _submitted(workload),
        revision=status.revision,
        attempt=workload.attempt,
        ready=ready,
        wanted=wanted,
        done=goal.status == "True",
        failed=_failed(workload, goal),
        reason=first.reason,
        message=first.message,
        next=status.next,
        progress=status.progress or Progress(),
        simulated=status.simulated,
    )


def _first(conditions: list[Condition], goal: Condition) -> Condition:
    """What is told first is what is wrong; that a runtime is old, or that nobody has reviewed what runs, is only that
    while nothing else is. And while it still comes to its goal, that is told, and not that all is in order aside."""
    aside = filter(None, (condition(conditions, each) for each in (OUTDATED, UNREVIEWED)))
    told = (each for each in aside if each.reason not in _WELL or goal.status == "True")
    return next(told, goal) if goal.reason in _WELL else goal


def _submitted(workload: Workload) -> Summary:
    metadata = workload.metadata
    new = msgspec.structs.replace(workload, status=type(workload.status)())
    ready, wanted = new.counted
    return Summary(
        kind=workload.kind,
        project=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        generation=metadata.generation,
        revision=metadata.generation,
        goal=workload.GOAL,
        ready=ready,
        wanted=wanted,
        image=workload.spec.image,
        address=workload.status.address,
    )


def _failed(workload: Workload, goal: Condition) -> bool:
    """Something is wrong that only its user can mend; or work that ends has ended without its goal."""
    if goal.status == "True":
        return False
    if workload.GOAL == SUCCEEDED:
        if goal.status == "False":
            return True
        if goal.reason in _TRIED_AGAIN or workload.goes_on:
            return False
    reason = REASONS.get(goal.reason)
    # A former copy that holds a rollout up is made anew by the operator, where nobody has said otherwise.
    return reason is not None and reason.who is Who.USER and reason is not ROLLOUT_BLOCKED

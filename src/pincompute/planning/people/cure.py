"""What to type so that a workload is well again: where it was well before its last change, that is to go back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from pincompute.api.status import condition
from pincompute.api.wire import spoken
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem
from pincompute.base.reasons import (
    CLAIM_NOT_BOUND,
    CLUSTER_REFUSED,
    GANG_SPLIT,
    GATE_CLOSED,
    NO_NODE_MATCHES,
    NODE_REFUSED,
    NOT_MADE,
    NOT_PREPARED,
    REGISTRY_UNREACHABLE,
    RUNTIME_GONE,
    UNSCHEDULABLE,
    Who,
)
from pincompute.planning.people.edits import goes_back
from pincompute.planning.people.history import Past, differences

TYPED = "pin "
"""A next step that begins so can be typed as it stands."""
BACK = f"{TYPED}rollback "
_LOOKS = ("pin logs ", "pin show ", "pin status", "pin image ")
"""These tell more, and mend nothing by themselves."""
_TOGETHER = timedelta(seconds=2)
"""Times in a cluster are whole seconds, and of two clocks."""
_SOON = timedelta(minutes=10)
"""What was well for longer than this is not ailing because of how it was changed then."""
_ASKED_FOR = frozenset(
    {
        CLAIM_NOT_BOUND,
        CLUSTER_REFUSED,
        GANG_SPLIT,
        GATE_CLOSED,
        NODE_REFUSED,
        NO_NODE_MATCHES,
        NOT_MADE,
        NOT_PREPARED,
        REGISTRY_UNREACHABLE,
        RUNTIME_GONE,
        UNSCHEDULABLE,
    }
)
"""Others may mend it as well, but it is by what the workload asks for that it is so."""


def found(owner: Workload, problem: Problem, edited: datetime | None, past: Sequence[Past]) -> Problem:
    """The same, with a command that mends it where one is known."""
    theirs = problem.reason.who is not Who.USER and problem.reason not in _ASKED_FOR
    if theirs or _mends(owner, problem.next):
        return problem
    well = last_well(owner, edited, past)
    if well is None or not goes_back(owner):
        return problem
    name, next_ = owner.metadata.name, well.number + 1
    after = f"{name}@{next_}" if next_ < owner.metadata.generation else "its last change"
    changed = differences(type(owner), well.said, spoken(owner.spec))
    notes = (
        problem.note,
        f"it was well until {after}: {'; '.join(changed)}",
        f"to keep that: {problem.next}" if problem.next else "",
    )
    note = "\n".join(each for each in notes if each)
    return problem._replace(note=note, next=f"{BACK}{name} --to {well.number}")


def last_well(owner: Workload, edited: datetime | None, past: Sequence[Past]) -> Past | None:
    """The revision before the one with which it ceased to be well: nothing where it never was."""
    goal = condition(owner.status.conditions, owner.GOAL)
    now = spoken(owner.spec)
    if goal is None or goal.status == "True" or edited is None:
        return None
    ceased = datetime.fromisoformat(goal.last_transition_time) + _TOGETHER
    known = [each for each in past if each.number < owner.metadata.generation]
    begun = [(each.number, datetime.fromisoformat(each.at)) for each in known if each.at]
    began = [(at, number) for number, at in (*begun, (owner.metadata.generation, edited)) if at <= ceased]
    at, culprit = max(began, default=(ceased, 0))
    before = [each for each in known if each.number < culprit and each.said != now and ceased - at < _SOON]
    return max(before, key=lambda each: each.number, default=None)


def _mends(owner: Workload, next_: str) -> bool:
    """To run the same again mends only what was chance."""
    again = f"pin rerun {owner.metadata.name}"
    return next_.startswith(TYPED) and not next_.startswith(_LOOKS) and next_ != again

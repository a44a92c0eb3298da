"""What a planner answers: everything that is wanted, and why the rest is waiting."""

from __future__ import annotations

from typing import NamedTuple

from pincompute.api.status import Report
from pincompute.base.problem import Problem
from pincompute.objects.content import Object
from pincompute.planning.steps import Step


def soonest(*moments: float | None) -> float | None:
    """Seconds until the first of them; nothing where none of them ever comes."""
    return min((each for each in moments if each is not None), default=None)


class Taking(NamedTuple):
    """How far a workload has come that takes over what was there before it."""

    now: tuple[str, ...] = ()
    """The uids of those natives that become ours as they are wanted."""
    later: tuple[str, ...] = ()
    """Those whose time has not come."""
    steps: tuple[Step, ...] = ()
    problems: tuple[Problem, ...] = ()


class Plan(NamedTuple):
    """Complete: whoever acts on it chooses nothing."""

    wanted: tuple[Object, ...]
    status: Report
    wake_after: float | None = None
    """Seconds after which time alone could change the answer."""
    why: Problem | None = None
    """The first cause of what is not as wanted; nothing is wrong without one."""
    kept: tuple[tuple[str, str], ...] = ()
    """Kind and name of natives that stay as they are, such as the records of former revisions."""
    steps: tuple[Step, ...] = ()
    """What no wanted native tells, such as the pods that make room for their successors."""
    taking: Taking = Taking()
    """Nothing of it is done while anything else stands in the way."""
    problems: tuple[Problem, ...] = ()
    """What forbids to act: where there are any, everything stays as it is."""
    more: bool = False
    """Is wanted once these are there."""

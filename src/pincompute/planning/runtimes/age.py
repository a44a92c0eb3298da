"""What runs a runtime that was replaced long ago: that all is as wanted does not make it well."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from pincompute.api.status import OUTDATED, SUCCEEDED
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import RUNTIME_OLD
from pincompute.planning import status
from pincompute.planning.plan import Plan, soonest
from pincompute.planning.runtimes.runtime import Runtimes, runtime_of, serves
from pincompute.planning.snapshot import Pod, Snapshot

OLD = timedelta(days=30)


class Behind(NamedTuple):
    """A runtime that copies still run, and that another one has replaced."""

    number: int
    """0 where no runtime that is known has those parts."""
    by: int
    since: datetime


def with_age(plan: Plan, snapshot: Snapshot) -> Plan:
    """What is planned, and that something of it is too old, or when it will be."""
    others = [each for each in plan.status.conditions if each.type != OUTDATED]
    behind = _behind(snapshot)
    if behind is None:
        return plan._replace(status=msgspec.structs.replace(plan.status, conditions=others))
    left = (behind.since + OLD - snapshot.now).total_seconds()
    if left > 0:
        said = msgspec.structs.replace(plan.status, conditions=others)
        return plan._replace(status=said, wake_after=soonest(plan.wake_after, left))
    problem = _problem(snapshot.owner, behind)
    told = status.said(snapshot, OUTDATED, RUNTIME_OLD, problem.message(), status=True)
    said = msgspec.structs.replace(
        plan.status, conditions=[*others, told], next=plan.status.next or ("" if plan.why else problem.next)
    )
    return plan._replace(status=said, why=plan.why or problem)


def _behind(snapshot: Snapshot) -> Behind | None:
    """The oldest of its copies; a hold is a promise, and what it keeps is not counted."""
    owner, runtimes = snapshot.owner, snapshot.runtimes
    chosen = runtime_of(owner, runtimes, snapshot.now)
    pods = status.pods_of(snapshot)
    if chosen.held or chosen.number >= runtimes.current:
        names = tuple(each.metadata.name for each in chosen.parts)
        pods = tuple(each for each in pods if each.parts != names)
    numbers = Counter(_runs(each, owner, runtimes) for each in pods)
    found = (_replaced(number, runtimes) for number in sorted(numbers))
    return min((each for each in found if each), key=lambda each: each.since, default=None)


def _runs(pod: Pod, owner: Workload, runtimes: Runtimes) -> int:
    """The newest runtime of which it has all parts that are for it, and no others."""
    for number in sorted(runtimes.known, reverse=True):
        parts = (runtimes.parts.get(each) for each in runtimes.known[number].spec.parts)
        if pod.parts == tuple(each.metadata.name for each in parts if each and serves(each, owner)):
            return number
    return 0


def _replaced(number: int, runtimes: Runtimes) -> Behind | None:
    """By the first that everybody had after it."""
    later = (each for each in runtimes.known.values() if number < each.number <= runtimes.current and each.status.done)
    done = [(datetime.fromisoformat(each.status.done), each.number) for each in later]
    since, by = min(done, default=(None, 0))
    return Behind(number, by, since) if since else None


def _problem(owner: Workload, behind: Behind) -> Problem:
    name = owner.metadata.name
    old = f"runtime {behind.number}" if behind.number else "parts of no runtime that is known"
    what = f"copies of {name} run {old}, and runtime {behind.by} took its place more than {OLD.days} days ago"
    note = f"everybody has had it since {behind.since.date()}"
    ends = owner.GOAL == SUCCEEDED
    if ends:
        note = f"{note}; work that runs gets no more of it than other images of sidecars"
    next_ = f"pin rerun {name}, once it has ended" if ends else f"pin restart {name}"
    return Problem(RUNTIME_OLD, what, Where(object=owner.metadata.place), note, next_)

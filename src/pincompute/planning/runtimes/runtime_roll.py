"""A roll under way: which wave comes next, what it waits for, and what makes it stand still."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from pincompute.api.runtime import Cursor, Roll, RollProgress, Runtime, RuntimeStatus
from pincompute.api.status import READY, Condition, condition
from pincompute.api.workload import Workload
from pincompute.base import reasons
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import REASONS, Reason
from pincompute.objects.numbers import share_of
from pincompute.objects.times import stamp
from pincompute.planning import status
from pincompute.planning.plan import Plan
from pincompute.planning.runtimes.runtime import Health, Runtimes, due, part_problems, runtime_of
from pincompute.planning.runtimes.waves import counted, following, wave_of
from pincompute.planning.snapshot import Snapshot

_NAMED = 3
"""Workloads that a message names; how many they are is always said."""


_REMEMBERED = 64
"""Workloads whose budget was broken that are remembered by name."""


class Step(NamedTuple):
    """How far the roll has come, and what is said of it. Where it goes on, the cursor is a new one."""

    cursor: Cursor | None
    reason: Reason
    message: str
    done: str = ""
    next: str = ""
    wake_after: float | None = None


def plan(snapshot: Snapshot) -> Plan:
    """A Runtime becomes nothing of its own: its status is what workloads are planned by."""
    owner: Runtime = snapshot.owner
    step = advance(owner, snapshot.runtimes, snapshot.now)
    roll, cursor = owner.spec.roll, step.cursor
    said = RuntimeStatus(
        observed_generation=owner.metadata.generation,
        next=step.next,
        conditions=[status.said(snapshot, READY, step.reason, step.message, status=bool(step.done))],
        cursor=cursor,
        done=step.done,
        wave="{} of {}".format(*counted(roll, cursor)) if roll and cursor else "",
        progress=_progress(owner.status, cursor, snapshot.runtimes.health),
    )
    wrong = step.reason.http >= 400 or step.reason == reasons.PAUSED
    where = Where(object=f"Runtime/{owner.number}")
    why = Problem(step.reason, step.message, where, next=step.next) if wrong else None
    return Plan((), said, step.wake_after, why)


def _progress(before: RuntimeStatus, cursor: Cursor | None, health: Health) -> RollProgress:
    """As last counted. Memory: the most that it had come to at once, and the budgets that were broken.

    Work ends, and between two of its tasks nothing of it runs: who was there and is no more is not waited for.
    """
    if before.cursor is None:
        return RuntimeStatus().progress if cursor else before.progress
    if health.cursor != before.cursor:
        return before.progress
    reached = max(before.progress.reached, health.reached)
    broken = sorted({*before.progress.broken, *health.broken})
    return RollProgress(
        reached=reached,
        there=health.there + reached - health.reached,
        failing=len(health.failing),
        pods=health.pods,
        in_place=health.in_place,
        replaced=health.replaced,
        broken=broken[:_REMEMBERED],
    )


def advance(runtime: Runtime, runtimes: Runtimes, now: datetime) -> Step:
    """A pure function of the runtime, of how those that it has reached are doing, and of the time."""
    settled = _settled(runtime, runtimes)
    if settled or runtime.spec.roll is None:
        return settled or Step(None, reasons.PREPARED, "it is prepared and serves nobody")
    roll, cursor = runtime.spec.roll, runtime.status.cursor
    return (
        _waiting(runtime, roll, runtimes)
        or _watched(roll, cursor, runtimes.health, now)
        or _begin(roll, cursor, runtimes.health, now)
    )


def _settled(runtime: Runtime, runtimes: Runtimes) -> Step | None:
    """It is not under way, or no more."""
    roll, before = runtime.spec.roll, runtime.status
    if roll and roll.stopped:
        message = f"it was taken back by {roll.stopped}; {_everybody(runtimes.current)}"
        return Step(None, reasons.STOPPED, message)
    if runtime.number < runtimes.current:
        message = f"runtime {runtimes.current} is current; only holds lead to this one"
        return Step(None, reasons.SUPERSEDED, message, done=before.done)
    if before.done:
        return Step(before.cursor, reasons.AVAILABLE, "it is current", done=before.done)
    return None


def _waiting(runtime: Runtime, roll: Roll, runtimes: Runtimes) -> Step | None:
    """It cannot go on, whatever the workloads do."""
    cursor = runtime.status.cursor
    if runtimes.next and runtimes.next < runtime.number:
        message = (
            f"it waits until runtime {runtimes.next} is rolled out; pin runtime stop --back would take that one back"
        )
        return Step(None, reasons.PROGRESSING, message)
    if roll.paused:
        return Step(
            cursor, reasons.PAUSED, f"the roll is paused by {roll.paused}", next=f"pin runtime roll {runtime.number}"
        )
    gone = part_problems(runtime, runtimes)
    return Step(cursor, gone[0].reason, gone[0].message(), next=gone[0].next) if gone else None


def _watched(roll: Roll, cursor: Cursor | None, health: Health, now: datetime) -> Step | None:
    """Nothing, once all that the wave has reached are well and were watched long enough."""
    if cursor is None:
        return None
    wave = _wave(roll, cursor)
    if health.cursor != cursor:
        return Step(cursor, reasons.PROGRESSING, f"{wave} has begun")
    if len(health.failing) > roll.failures:
        return _unhealthy(roll, cursor, health)
    if health.there + len(health.failing) < health.reached:
        message = f"{wave}: {health.there} of {health.reached} workloads have it and are well"
        return Step(cursor, reasons.PROGRESSING, message)
    end = datetime.fromisoformat(cursor.since) + timedelta(seconds=roll.pause_seconds)
    if now < end:
        message = (
            f"{wave}: {health.there} of {health.reached} workloads have it and are well; watched until {stamp(end)}"
        )
        return Step(cursor, reasons.PROGRESSING, message, wake_after=(end - now).total_seconds())
    return None


def _begin(roll: Roll, cursor: Cursor | None, health: Health, now: datetime) -> Step:
    """The wave after this one; after the last, everybody has it."""
    wave = following(roll, cursor)
    if wave is None:
        return Step(cursor, reasons.AVAILABLE, "it is current", done=stamp(now))
    proven = cursor is not None and (cursor.proven or health.in_place + health.replaced > 0)
    begun = Cursor(zone=wave.zone, tier=wave.tier, percent=wave.percent, since=stamp(now), proven=proven)
    return Step(begun, reasons.PROGRESSING, f"{_wave(roll, begun)} has begun")


def _unhealthy(roll: Roll, cursor: Cursor, health: Health) -> Step:
    failing = sorted(health.failing)
    names = ", ".join(failing[:_NAMED])
    more = f" and {len(failing) - _NAMED} more" if len(failing) > _NAMED else ""
    message = (
        f"{_wave(roll, cursor)}: {len(failing)} of {health.reached} workloads fail since it reached them,"
        f" {roll.failures} may: {names}{more}"
    )
    return Step(cursor, reasons.ROLL_UNHEALTHY, message, next="pin runtime stop --back, or mend them")


def _wave(roll: Roll, cursor: Cursor) -> str:
    number, of = counted(roll, cursor)
    return f"wave {number} of {of} ({wave_of(cursor).words(roll)})"


def _everybody(number: int) -> str:
    return f"everybody has runtime {number} again" if number else "nobody has a runtime again"


def health_of(workloads: Iterable[Workload], runtimes: Runtimes, now: datetime) -> Health:
    """Counts those that the next runtime has reached."""
    cursor = runtimes.cursor
    if not runtimes.next or cursor is None:
        return Health(cursor)
    before = runtimes._replace(next=0, cursor=None)
    theirs = [each for each in workloads if _counts(each, runtimes, cursor, now)]
    changed = [each for each in theirs if _parts(each, runtimes, now) != _parts(each, before, now)]
    have = [each.status for each in changed if each.status.runtime == runtimes.next]
    return Health(
        cursor,
        reached=len(theirs),
        there=sum(_is_there(each, runtimes.next) for each in theirs),
        failing=_named(each for each in theirs if _fails(_goal(each))),
        pods=sum(_wanted(each) for each in changed),
        in_place=sum(each.renewed for each in have),
        replaced=sum(max(0, each.progress.scheduled - each.renewed) for each in have if each.progress),
        broken=_named(each for each in changed if _breaks(each, cursor)),
    )


def _named(workloads: Iterable[Workload]) -> tuple[str, ...]:
    return tuple(sorted(each.metadata.place for each in workloads))


def _parts(owner: Workload, runtimes: Runtimes, now: datetime) -> list[str]:
    return [each.metadata.name for each in runtime_of(owner, runtimes, now).parts]


def _wanted(owner: Workload) -> int:
    return owner.status.progress.wanted if owner.status.progress else 0


def _breaks(owner: Workload, cursor: Cursor) -> bool:
    """More of its copies are away than its owner lets be; what is only being made never had them."""
    lets = getattr(owner.spec, "unavailable", None)
    new = owner.metadata.creation_timestamp > cursor.since
    if lets is None or new or owner.status.observed_generation != owner.metadata.generation:
        return False
    return _wanted(owner) - owner.status.ready_replicas > share_of(lets, _wanted(owner), up=True)


def _counts(owner: Workload, runtimes: Runtimes, cursor: Cursor, now: datetime) -> bool:
    """What failed before the wave came, or is kept still by somebody, says nothing of the runtime."""
    # Of work that has begun, those count that it has changed something of.
    reached = (due if owner.status.renewed else runtime_of)(owner, runtimes, now)
    if reached.number != runtimes.next:
        return False
    goal = _goal(owner)
    if goal is None or goal.status == "True":
        return True
    return goal.reason != reasons.PAUSED.code and not (_fails(goal) and goal.last_transition_time < cursor.since)


def _is_there(owner: Workload, number: int) -> bool:
    """Made with it, and well; what ends by itself is well where it gets on."""
    goal, said = _goal(owner), owner.status
    well = goal is not None and (goal.status == "True" or (owner.GOAL != READY and not _fails(goal)))
    has = said.runtime == number or (owner.GOAL != READY and said.renewed > 0)
    return has and said.observed_generation == owner.metadata.generation and well


def _fails(goal: Condition | None) -> bool:
    """Something is wrong, and it is not merely on its way."""
    if goal is None or goal.status == "True":
        return False
    reason = REASONS.get(goal.reason)
    return reason is not None and reason.http >= 400


def _goal(owner: Workload) -> Condition | None:
    return condition(owner.status.conditions, owner.GOAL)

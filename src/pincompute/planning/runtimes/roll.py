"""Progress of a roll: which wave comes next, what it waits for, and what halts it.

In: the Runtime with its cursor, the health of the workloads that the cursor has reached, and the time. Out: the next
cursor, and a message. The cursor is all that a roll stores: zone, tier and percentage of the current wave. Workloads
compare themselves with it (`waves.wave_has_reached`), so that the roll writes to no workload.

A wave is complete when all workloads it has reached are healthy with the new runtime and the pause has passed.
Workloads that were failing before the wave do not count, because their failure tells nothing about the runtime. If more
fail than the roll allows, it halts until an administrator decides. Health that was counted for an older cursor is
ignored: it would let a wave pass before it has begun.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from pincompute.api.daemon import PinterestDaemon
from pincompute.api.runtime import Roll, RollCursor, RollProgress, Runtime, RuntimeStatus
from pincompute.api.status import READY, Condition, find_condition
from pincompute.api.workload import Workload
from pincompute.base import reasons
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import Reason, find_reason
from pincompute.objects.number_sets import scaled_value
from pincompute.objects.times import format_time
from pincompute.planning import status
from pincompute.planning.plan import Plan
from pincompute.planning.runtimes.daemon_pins import missing_pin_problems, pin_of
from pincompute.planning.runtimes.selection import (
    RollHealth,
    Runtimes,
    choose_runtime,
    choose_runtime_if_started_now,
    missing_part_problems,
)
from pincompute.planning.runtimes.waves import DAEMONS_FIRST, wave_after, wave_at, wave_position
from pincompute.planning.snapshot import Snapshot

_MAX_NAMES_IN_MESSAGE = 3
_MAX_OVER_UNAVAILABLE = 64
"""Workloads with too many unavailable pods that the status lists."""


class RollStep(NamedTuple):
    """Position of the roll and its description. The cursor changes if a new wave begins."""

    cursor: RollCursor | None
    reason: Reason
    message: str
    done: str = ""
    next: str = ""
    wake_after_s: float | None = None


def plan(snapshot: Snapshot) -> Plan:
    """Plan the status of a Runtime. It becomes no objects; workloads are planned by its status."""
    owner: Runtime = snapshot.owner
    step = advance_roll(owner, snapshot.runtimes, snapshot.now)
    roll, cursor = owner.spec.roll, step.cursor
    new_status = RuntimeStatus(
        observed_generation=owner.metadata.generation,
        next=step.next,
        conditions=[status.build_condition(snapshot, READY, step.reason, step.message, status=bool(step.done))],
        cursor=cursor,
        done=step.done,
        wave="{} of {}".format(*wave_position(roll, cursor)) if roll and cursor else "",
        progress=_roll_progress(owner.status, cursor, snapshot.runtimes.health),
    )
    is_problem = step.reason.is_problem or step.reason == reasons.PAUSED
    where = Where(object=f"Runtime/{owner.number}")
    why = Problem(step.reason, step.message, where, next=step.next) if is_problem else None
    return Plan((), new_status, step.wake_after_s, why)


def _roll_progress(before: RuntimeStatus, cursor: RollCursor | None, health: RollHealth) -> RollProgress:
    """Progress as last counted, with the highest number of reached workloads and all exceeded limits so far.

    Batch work may end meanwhile, and has no pods between two tasks. Workloads that were reached and are not any more
    therefore count as healthy.
    """
    if before.cursor is None:
        return RuntimeStatus().progress if cursor else before.progress
    if health.cursor != before.cursor:
        return before.progress
    reached = max(before.progress.reached, health.reached)
    over_unavailable = sorted({*before.progress.over_unavailable, *health.over_unavailable})
    return RollProgress(
        reached=reached,
        healthy=health.healthy + reached - health.reached,
        failing=len(health.failing),
        pods=health.pods,
        in_place=health.in_place,
        replaced=health.replaced,
        over_unavailable=over_unavailable[:_MAX_OVER_UNAVAILABLE],
    )


def advance_roll(runtime: Runtime, runtimes: Runtimes, now: datetime) -> RollStep:
    """Advance a roll, by the health of the workloads it has reached and the time."""
    inactive = _inactive_step(runtime, runtimes)
    if inactive or runtime.spec.roll is None:
        return inactive or RollStep(None, reasons.RUNTIME_PREPARED, "prepared, used by no workload")
    roll, cursor = runtime.spec.roll, runtime.status.cursor
    return (
        _blocked_step(runtime, roll, runtimes)
        or _observing_step(roll, cursor, runtimes.health, now)
        or _next_wave_step(runtime, roll, runtimes.health, now)
    )


def _inactive_step(runtime: Runtime, runtimes: Runtimes) -> RollStep | None:
    """Step of a runtime that was stopped, superseded or rolled out completely."""
    roll, before = runtime.spec.roll, runtime.status
    if roll and roll.stopped:
        current = f"runtime {runtimes.current}" if runtimes.current else "no runtime"
        return RollStep(None, reasons.ROLL_STOPPED, f"rolled back by {roll.stopped}; all workloads have {current}")
    if runtime.number < runtimes.current:
        message = f"runtime {runtimes.current} is current; this one is used by holds only"
        return RollStep(None, reasons.RUNTIME_SUPERSEDED, message, done=before.done)
    if before.done:
        return RollStep(before.cursor, reasons.AVAILABLE, "current", done=before.done)
    return None


def _blocked_step(runtime: Runtime, roll: Roll, runtimes: Runtimes) -> RollStep | None:
    """Step of a roll that cannot continue, regardless of the workloads."""
    cursor = runtime.status.cursor
    if runtimes.next and runtimes.next < runtime.number:
        message = f"waits for the roll of runtime {runtimes.next}; to roll that back: pin runtime stop --back"
        return RollStep(None, reasons.PROGRESSING, message)
    if roll.paused:
        return RollStep(
            cursor, reasons.PAUSED, f"roll paused by {roll.paused}", next=f"pin runtime roll {runtime.number}"
        )
    missing = missing_part_problems(runtime, runtimes) or runtimes.health.pin_problems
    return RollStep(cursor, missing[0].reason, missing[0].message(), next=missing[0].next) if missing else None


def _observing_step(roll: Roll, cursor: RollCursor | None, health: RollHealth, now: datetime) -> RollStep | None:
    """Step that waits for the current wave; None if all its workloads are healthy and the pause has passed."""
    if cursor is None:
        return None
    wave = _wave_text(roll, cursor)
    if health.cursor != cursor:
        return RollStep(cursor, reasons.PROGRESSING, f"{wave} started")
    if len(health.failing) > roll.failures:
        return _unhealthy_step(roll, cursor, health)
    message = f"{wave}: {health.healthy} of {health.reached} workloads healthy"
    if health.healthy + len(health.failing) < health.reached:
        return RollStep(cursor, reasons.PROGRESSING, message)
    end = datetime.fromisoformat(cursor.since) + timedelta(seconds=roll.pause_seconds)
    if now < end:
        message = f"{message}; observed until {format_time(end)}"
        return RollStep(cursor, reasons.PROGRESSING, message, wake_after_s=(end - now).total_seconds())
    return None


def _next_wave_step(runtime: Runtime, roll: Roll, health: RollHealth, now: datetime) -> RollStep:
    """Step to the next wave; after the last one the runtime is current."""
    cursor = runtime.status.cursor
    wave = wave_after(roll, cursor)
    if wave is None:
        return RollStep(cursor, reasons.AVAILABLE, "current", done=format_time(now))
    if cursor is None and runtime.spec.daemons:
        # All daemons come first, and no workload: none is in 0% of its zone and tier.
        wave = wave._replace(percent=DAEMONS_FIRST)
    proven = cursor is not None and (cursor.proven or health.in_place + health.replaced > 0)
    begun = RollCursor(zone=wave.zone, tier=wave.tier, percent=wave.percent, since=format_time(now), proven=proven)
    return RollStep(begun, reasons.PROGRESSING, f"{_wave_text(roll, begun)} started")


def _unhealthy_step(roll: Roll, cursor: RollCursor, health: RollHealth) -> RollStep:
    failing = sorted(health.failing)
    names = ", ".join(failing[:_MAX_NAMES_IN_MESSAGE])
    others = len(failing) - _MAX_NAMES_IN_MESSAGE
    more = f" and {others} more" if others > 0 else ""
    message = (
        f"{_wave_text(roll, cursor)}: {len(failing)} of {health.reached} workloads have failed since,"
        f" {roll.failures} allowed: {names}{more}"
    )
    return RollStep(cursor, reasons.ROLL_UNHEALTHY, message, next="pin runtime stop --back, or fix them")


def _wave_text(roll: Roll, cursor: RollCursor) -> str:
    number, of = wave_position(roll, cursor)
    return f"wave {number} of {of} ({wave_at(cursor).text(roll)})"


def roll_health(workloads: Iterable[Workload], runtimes: Runtimes, now: datetime) -> RollHealth:
    """Count the workloads that the next runtime has reached, by health."""
    cursor = runtimes.cursor
    workloads = list(workloads)
    runtime = runtimes.by_number.get(runtimes.next)
    pin_problems = missing_pin_problems(runtime, workloads) if runtime else ()
    if not runtimes.next or cursor is None:
        return RollHealth(cursor, pin_problems=pin_problems)
    before = runtimes._replace(next=0, cursor=None)
    reached = [each for each in workloads if _is_counted(each, runtimes, cursor, now)]
    changed = [each for each in reached if _part_names(each, runtimes, now) != _part_names(each, before, now)]
    have = [each.status for each in changed if each.status.runtime == runtimes.next]
    return RollHealth(
        cursor,
        reached=len(reached),
        healthy=sum(_is_healthy(each, runtimes, now) for each in reached),
        failing=_sorted_keys(each for each in reached if _is_failing(_goal_condition(each))),
        pods=sum(_wanted_pods(each) for each in changed),
        in_place=sum(each.updated_in_place for each in have),
        replaced=sum(max(0, each.progress.scheduled - each.updated_in_place) for each in have if each.progress),
        over_unavailable=_sorted_keys(each for each in changed if _is_over_unavailable(each, cursor)),
        pin_problems=pin_problems,
    )


def _sorted_keys(workloads: Iterable[Workload]) -> tuple[str, ...]:
    return tuple(sorted(each.metadata.key for each in workloads))


def _part_names(owner: Workload, runtimes: Runtimes, now: datetime) -> list[str]:
    return [each.metadata.name for each in choose_runtime(owner, runtimes, now).parts]


def _wanted_pods(owner: Workload) -> int:
    return owner.status.progress.wanted if owner.status.progress else 0


def _is_over_unavailable(owner: Workload, cursor: RollCursor) -> bool:
    """True if more pods are unavailable than the workload allows. New workloads have had none available yet."""
    allowed = getattr(owner.spec, "unavailable", None)
    is_new = owner.metadata.creation_timestamp > cursor.since
    if allowed is None or is_new or owner.status.observed_generation != owner.metadata.generation:
        return False
    unavailable = _wanted_pods(owner) - owner.status.ready_replicas
    return unavailable > scaled_value(allowed, _wanted_pods(owner), up=True)


def _is_counted(owner: Workload, runtimes: Runtimes, cursor: RollCursor, now: datetime) -> bool:
    """True if the roll has reached the workload. Paused, expired and earlier failed ones tell nothing about it."""
    if not _gets_runtime(owner, runtimes, now) and pin_of(owner, runtimes) is None:
        return False
    goal = _goal_condition(owner)
    if goal is None or goal.status == "True":
        return True
    return goal.reason not in {reasons.PAUSED.code, reasons.EXPIRED.code} and not (
        _is_failing(goal) and goal.last_transition_time < cursor.since
    )


def _gets_runtime(owner: Workload, runtimes: Runtimes, now: datetime) -> bool:
    """True if the roll has reached the workload. A daemon that no part serves ignores runtimes, except for its pin."""
    # Work that has begun keeps its runtime; it counts only if sidecars of it were updated in place.
    choose = choose_runtime_if_started_now if owner.status.updated_in_place else choose_runtime
    chosen = choose(owner, runtimes, now)
    return chosen.number == runtimes.next and (bool(chosen.parts) or not isinstance(owner, PinterestDaemon))


def _is_healthy(owner: Workload, runtimes: Runtimes, now: datetime) -> bool:
    """True if the workload has the runtime and its goal. Finite work is healthy while it progresses."""
    goal, status_, number = _goal_condition(owner), owner.status, runtimes.next
    is_well = goal is not None and (goal.status == "True" or (owner.GOAL != READY and not _is_failing(goal)))
    has_runtime = status_.runtime == number or (owner.GOAL != READY and status_.updated_in_place > 0)
    if isinstance(owner, PinterestDaemon):
        pin = pin_of(owner, runtimes)
        has_pin = pin is None or (owner.status.pinned_revision, owner.status.pinned_by) == pin
        has_runtime = has_pin and (has_runtime or not _gets_runtime(owner, runtimes, now))
    return has_runtime and status_.observed_generation == owner.metadata.generation and is_well


def _is_failing(goal: Condition | None) -> bool:
    """True if there is a problem, and not only progress to wait for."""
    if goal is None or goal.status == "True":
        return False
    reason = find_reason(goal.reason)
    return reason is not None and reason.is_problem


def _goal_condition(owner: Workload) -> Condition | None:
    return find_condition(owner.status.conditions, owner.GOAL)

"""Selects the runtime of a workload: the current one, the next one, or an older one that it holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from types import MappingProxyType
from typing import NamedTuple

from pincompute.api.custom_resource import CustomResource
from pincompute.api.runtime import RollCursor, Runtime, RuntimeStatus
from pincompute.api.sidecar import DEFAULT_SERVED_KINDS, PinterestSidecar
from pincompute.api.status import SUCCEEDED
from pincompute.api.workload import Hold, Workload
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import DOCUMENT_INVALID, HELD_RUNTIME_MISSING, PART_MISSING, RUNTIME_MISSING
from pincompute.planning.pods.config_bundles import config_fields
from pincompute.planning.runtimes.waves import wave_has_reached


class RollHealth(NamedTuple):
    """Health of the workloads that a roll has reached; counted by `roll.roll_health`."""

    cursor: RollCursor | None = None
    """Position of the roll at the time of the count. The numbers say nothing about a later wave."""
    reached: int = 0
    """Workloads reached, without paused ones and those that were failing before."""
    healthy: int = 0
    """Reached workloads that have the runtime and are healthy."""
    failing: tuple[str, ...] = ()
    """Reached workloads that have failed since, such as ads/web."""
    pods: int = 0
    """Pods of workloads that the runtime changes."""
    in_place: int = 0
    replaced: int = 0
    over_unavailable: tuple[str, ...] = ()
    """Workloads with more unavailable pods than they allow."""
    pin_problems: tuple[Problem, ...] = ()
    """Pins of the runtime without a daemon or a record. They hold at every position of the roll."""


class Runtimes(NamedTuple):
    """All runtimes of a cluster, and the position of a roll. Built by `Runtimes.from_resources`."""

    by_number: Mapping[int, Runtime] = MappingProxyType({})
    parts: Mapping[str, PinterestSidecar] = MappingProxyType({})
    current: int = 0
    """Runtime of all workloads; 0 if none was rolled out yet."""
    next: int = 0
    """Runtime that is being rolled out; 0 if there is none."""
    cursor: RollCursor | None = None
    """Position of the roll of the next runtime."""
    holds_void_before: int = 0
    """Holds on runtimes before this number are void, because a security fix was rolled out that breaks holds."""
    health: RollHealth = RollHealth()

    @classmethod
    def from_resources(cls, resources: Iterable[CustomResource]) -> Runtimes:
        """Build from the Runtime and PinterestSidecar resources; others are ignored.

        In a cluster, the newest runtime with a complete roll is current. In a folder of files no roll has happened:
        the newest runtime without a roll counts as current, or the newest of all if every one has a roll.
        """
        resources = list(resources)
        known = {each.number: each for each in resources if isinstance(each, Runtime)}
        parts = {each.metadata.name: each for each in resources if isinstance(each, PinterestSidecar)}
        in_cluster = any(each.metadata.uid or each.status != RuntimeStatus() for each in known.values())
        current = _newest_done(known) if in_cluster else _current_in_folder(known)
        rolling = min((number for number, each in known.items() if number > current and _is_rolling(each)), default=0)
        return cls(
            by_number=MappingProxyType({number: known[number] for number in sorted(known)}),
            parts=MappingProxyType(parts),
            current=current,
            next=rolling,
            cursor=known[rolling].status.cursor if rolling else None,
            holds_void_before=_newest_hold_breaker(known, current),
        )

    def is_proven(self, number: int) -> bool:
        """True if workloads already run well with it."""
        proven_by_roll = number == self.next and self.cursor is not None and self.cursor.proven
        runtime = self.by_number.get(number)
        return proven_by_roll or (runtime is not None and bool(runtime.status.done))

    def after_roll(self, number: int) -> Runtimes:
        """State after a complete roll of this runtime."""
        holds_void_before = _newest_hold_breaker(self.by_number, number)
        return self._replace(current=number, next=0, cursor=None, holds_void_before=holds_void_before)


class ChosenRuntime(NamedTuple):
    """Runtime of one workload, with the parts that serve it."""

    number: int = 0
    """0 if the cluster has no runtime."""
    parts: tuple[PinterestSidecar, ...] = ()
    other_parts: tuple[PinterestSidecar, ...] = ()
    """Parts of the same runtime that do not serve this workload."""
    problems: tuple[Problem, ...] = ()
    held_until: str = ""
    """Last day of the hold, if a hold decided."""
    fixed_at_start: bool = False
    """True if the workload keeps the runtime it started with until it ends."""


def choose_runtime(owner: Workload, runtimes: Runtimes, now: datetime) -> ChosenRuntime:
    """Choose by the position of the roll. A new workload gets the same runtime as old ones of its zone and tier."""
    if not runtimes.by_number:
        return ChosenRuntime()
    if has_started(owner):
        return _with_parts(owner, runtimes, ChosenRuntime(owner.status.runtime, fixed_at_start=True))
    return choose_runtime_if_started_now(owner, runtimes, now)


def choose_runtime_if_started_now(owner: Workload, runtimes: Runtimes, now: datetime) -> ChosenRuntime:
    """Choose as if the workload started now. Work in progress is updated in place to this runtime, where possible."""
    if not runtimes.by_number:
        return ChosenRuntime()
    return _with_parts(owner, runtimes, _apply_hold(owner, runtimes, _runtime_by_roll(owner, runtimes), now))


def has_started(owner: Workload) -> bool:
    """True for finite work in progress: its Jobs are immutable, and recreating them would lose work."""
    return owner.GOAL == SUCCEEDED and owner.status.progress is not None


def part_serves(part: PinterestSidecar, owner: Workload) -> bool:
    serves = part.spec.serves
    return (
        owner.kind in (serves.kinds or DEFAULT_SERVED_KINDS)
        and (not serves.tiers or owner.spec.tier in serves.tiers)
        and serves.selector.items() <= owner.metadata.labels.items()
        and (not serves.fields or not _used_fields(owner).isdisjoint(serves.fields))
    )


def _used_fields(owner: Workload) -> frozenset[str]:
    """Fields of the workload that parts serve."""
    # An empty serverset is set, an empty list is not.
    plain = ("secrets", "endpoints", "serverset", "callers", "calls")
    return config_fields(owner) | {each for each in plain if getattr(owner.spec, each, None) not in (None, [])}


def _runtime_by_roll(owner: Workload, runtimes: Runtimes) -> int:
    """The next runtime if the roll has reached the workload, otherwise the current one."""
    roll = runtimes.by_number[runtimes.next].spec.roll if runtimes.next else None
    if roll and runtimes.cursor and wave_has_reached(owner, roll, runtimes.cursor):
        return runtimes.next
    return runtimes.current


def _apply_hold(owner: Workload, runtimes: Runtimes, number: int, now: datetime) -> ChosenRuntime:
    """An older runtime, if the workload has a valid hold on it."""
    hold = owner.spec.hold
    if hold is None:
        return ChosenRuntime(number)
    end = _hold_end(hold)
    if end is None:
        where = Where(object=owner.metadata.key, field="spec.hold.until")
        problem = Problem(DOCUMENT_INVALID, f"hold.until is '{hold.until}': must be a date such as 2026-01-31", where)
        return ChosenRuntime(number, problems=(problem,))
    if now > end or hold.runtime < _holds_void_before(runtimes, number):
        return ChosenRuntime(number)
    if hold.runtime not in runtimes.by_number:
        return ChosenRuntime(number, problems=(_held_runtime_missing(owner, hold, runtimes),))
    return ChosenRuntime(hold.runtime, held_until=hold.until) if hold.runtime < number else ChosenRuntime(number)


def _with_parts(owner: Workload, runtimes: Runtimes, chosen: ChosenRuntime) -> ChosenRuntime:
    if chosen.number == 0 or chosen.problems:
        return chosen
    runtime = runtimes.by_number.get(chosen.number)
    if runtime is None:
        return chosen._replace(problems=(_runtime_missing(owner, chosen.number),))
    problems = missing_part_problems(runtime, runtimes)
    known = [runtimes.parts[each] for each in runtime.spec.parts if each in runtimes.parts]
    serving = tuple(each for each in known if part_serves(each, owner))
    return chosen._replace(
        parts=serving, other_parts=tuple(each for each in known if each not in serving), problems=problems
    )


def missing_part_problems(runtime: Runtime, runtimes: Runtimes) -> tuple[Problem, ...]:
    """Problems of parts that the runtime lists and that do not exist."""
    return tuple(
        Problem(
            PART_MISSING,
            f"runtime {runtime.number} lists part {each}, which does not exist",
            Where(object=f"Runtime/{runtime.number}", field="spec.parts"),
            f"the parts are {', '.join(sorted(runtimes.parts))}" if runtimes.parts else "there are no parts",
        )
        for each in runtime.spec.parts
        if each not in runtimes.parts
    )


def _held_runtime_missing(owner: Workload, hold: Hold, runtimes: Runtimes) -> Problem:
    return Problem(
        HELD_RUNTIME_MISSING,
        f"it holds runtime {hold.runtime}, which does not exist",
        Where(object=owner.metadata.key, field="spec.hold.runtime"),
        f"the runtimes are {', '.join(map(str, runtimes.by_number))}",
        f"hold one of these, or remove hold to get {runtimes.current or runtimes.next}",
    )


def _runtime_missing(owner: Workload, number: int) -> Problem:
    return Problem(
        RUNTIME_MISSING,
        f"it started with runtime {number}, which was deleted since",
        Where(object=owner.metadata.key),
        "it continues unchanged and cannot be changed",
        f"restore runtime {number} until it has ended",
    )


def hold_left_s(owner: Workload, now: datetime) -> float | None:
    """Seconds until the hold ends; None without a hold, or after its end."""
    end = _hold_end(owner.spec.hold) if owner.spec.hold else None
    return (end - now + timedelta.resolution).total_seconds() if end and now < end else None


def _hold_end(hold: Hold) -> datetime | None:
    """Last moment of the last day, in UTC; None if the date is invalid."""
    try:
        return datetime.combine(date.fromisoformat(hold.until), time.max, UTC)
    except ValueError:
        return None


def _holds_void_before(runtimes: Runtimes, number: int) -> int:
    """Number before which holds are void for a workload that gets runtime `number`."""
    roll = runtimes.by_number[number].spec.roll if number in runtimes.by_number else None
    return max(runtimes.holds_void_before, number if roll and roll.break_holds else 0)


def _newest_hold_breaker(known: Mapping[int, Runtime], current: int) -> int:
    rolls = ((number, each.spec.roll) for number, each in known.items() if number <= current)
    return max((number for number, roll in rolls if roll and roll.break_holds and not roll.stopped), default=0)


def _newest_done(known: Mapping[int, Runtime]) -> int:
    return max((number for number, each in known.items() if each.status.done and not _is_stopped(each)), default=0)


def _current_in_folder(known: Mapping[int, Runtime]) -> int:
    """Newest runtime without a roll, or the newest of all."""
    without_roll = [number for number, each in known.items() if each.spec.roll is None]
    return max(without_roll or known, default=0)


def _is_rolling(runtime: Runtime) -> bool:
    return runtime.spec.roll is not None and not runtime.status.done and not _is_stopped(runtime)


def _is_stopped(runtime: Runtime) -> bool:
    return bool(runtime.spec.roll and runtime.spec.roll.stopped)

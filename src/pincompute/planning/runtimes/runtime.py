"""Which runtime a workload is made with: the current one, the next one, or an older one that it holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from types import MappingProxyType
from typing import NamedTuple

from pincompute.api.noun import Noun
from pincompute.api.runtime import Cursor, Runtime, RuntimeStatus
from pincompute.api.sidecar import USUALLY, PinterestSidecar
from pincompute.api.status import SUCCEEDED
from pincompute.api.workload import Hold, Workload
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import DOCUMENT_INVALID, HOLD_GONE, PART_GONE, RUNTIME_GONE
from pincompute.planning.runtimes.waves import reached


class Health(NamedTuple):
    """How those that a roll has reached are doing; counted in `planning/runtimes/runtime_roll.py`."""

    cursor: Cursor | None = None
    """How far the roll had come when they were counted: older figures say nothing of a newer wave."""
    reached: int = 0
    """Workloads that it has come to, without those that were failing before and those that somebody keeps still."""
    there: int = 0
    """Those of them that are made with it and are well."""
    failing: tuple[str, ...] = ()
    """Those of them that fail since, such as ads/web."""
    pods: int = 0
    """Of those in which it changes anything."""
    in_place: int = 0
    replaced: int = 0
    broken: tuple[str, ...] = ()
    """Workloads of which more pods are away than their owner lets be."""


class Runtimes(NamedTuple):
    """Every runtime of a cluster, and how far a roll has come; made by `Runtimes.of`."""

    known: Mapping[int, Runtime] = MappingProxyType({})
    parts: Mapping[str, PinterestSidecar] = MappingProxyType({})
    current: int = 0
    """What everybody has; 0 where nothing was ever rolled out."""
    next: int = 0
    """What is being rolled out; 0 is nothing."""
    cursor: Cursor | None = None
    """How far the next one has come."""
    unheld: int = 0
    """Holds on runtimes before this one are broken: it closes a hole, and everybody has it."""
    health: Health = Health()

    @classmethod
    def of(cls, nouns: Iterable[Noun]) -> Runtimes:
        """Of Runtime and PinterestSidecar; others are passed over.

        In a cluster the newest whose roll is done is current. In a folder nothing was ever rolled out, so the newest
        that has no roll is taken to be current, and where all have one, the newest.
        """
        given = list(nouns)
        known = {each.number: each for each in given if isinstance(each, Runtime)}
        parts = {each.metadata.name: each for each in given if isinstance(each, PinterestSidecar)}
        live = any(each.metadata.uid or each.status != RuntimeStatus() for each in known.values())
        current = _done(known) if live else _newest(known)
        rolling = min((number for number, each in known.items() if number > current and _rolls(each)), default=0)
        return cls(
            known=MappingProxyType({number: known[number] for number in sorted(known)}),
            parts=MappingProxyType(parts),
            current=current,
            next=rolling,
            cursor=known[rolling].status.cursor if rolling else None,
            unheld=_unheld(known, current),
        )

    def proven(self, number: int) -> bool:
        """Others have run with it, and were well."""
        rolling = number == self.next and self.cursor is not None and self.cursor.proven
        known = self.known.get(number)
        return rolling or (known is not None and bool(known.status.done))

    def finished(self, number: int) -> Runtimes:
        """As they are when everybody has this one."""
        return self._replace(current=number, next=0, cursor=None, unheld=_unheld(self.known, number))


class Chosen(NamedTuple):
    """The runtime of one workload, and those of its parts that serve it."""

    number: int = 0
    """0 is none: the cluster has no runtime."""
    parts: tuple[PinterestSidecar, ...] = ()
    others: tuple[PinterestSidecar, ...] = ()
    """Parts of the same runtime that serve others only."""
    problems: tuple[Problem, ...] = ()
    held: str = ""
    """The last day of the hold that made the choice."""
    kept: bool = False
    """It began with this one, and ends with it."""


def runtime_of(owner: Workload, runtimes: Runtimes, now: datetime) -> Chosen:
    """A pure function of the workload and of how far the roll has come; newcomers get what their like has."""
    if not runtimes.known:
        return Chosen()
    if began(owner):
        return _with_parts(owner, runtimes, Chosen(owner.status.runtime, kept=True))
    return due(owner, runtimes, now)


def due(owner: Workload, runtimes: Runtimes, now: datetime) -> Chosen:
    """What it would be made with if it began now: of work that has begun, its pods may get as much where they are."""
    if not runtimes.known:
        return Chosen()
    return _with_parts(owner, runtimes, _held(owner, runtimes, _turn(owner, runtimes), now))


def began(owner: Workload) -> bool:
    """Work that ends by itself keeps the natives that it began with: they could only be made anew, and it with them."""
    return owner.GOAL == SUCCEEDED and owner.status.progress is not None


def serves(part: PinterestSidecar, owner: Workload) -> bool:
    whom = part.spec.serves
    return (
        owner.kind in (whom.kinds or USUALLY)
        and (not whom.tiers or owner.spec.tier in whom.tiers)
        and whom.selector.items() <= owner.metadata.labels.items()
    )


def _turn(owner: Workload, runtimes: Runtimes) -> int:
    """The next one where the roll has come to this workload, else the current one."""
    roll = runtimes.known[runtimes.next].spec.roll if runtimes.next else None
    if roll and runtimes.cursor and reached(owner, roll, runtimes.cursor):
        return runtimes.next
    return runtimes.current


def _held(owner: Workload, runtimes: Runtimes, turn: int, now: datetime) -> Chosen:
    """An older one, as long as the hold lasts and nothing breaks it."""
    hold = owner.spec.hold
    if hold is None:
        return Chosen(turn)
    end = _end(hold)
    if end is None:
        what = f"until is '{hold.until}', and there is no such day"
        return Chosen(turn, problems=(Problem(DOCUMENT_INVALID, what, _where(owner, "spec.hold.until")),))
    if now > end or hold.runtime < _broken(runtimes, turn):
        return Chosen(turn)
    if hold.runtime not in runtimes.known:
        return Chosen(turn, problems=(_hold_gone(owner, hold, runtimes),))
    return Chosen(hold.runtime, held=hold.until) if hold.runtime < turn else Chosen(turn)


def _with_parts(owner: Workload, runtimes: Runtimes, chosen: Chosen) -> Chosen:
    if chosen.number == 0 or chosen.problems:
        return chosen
    runtime = runtimes.known.get(chosen.number)
    if runtime is None:
        return chosen._replace(problems=(_runtime_gone(owner, chosen.number),))
    gone = part_problems(runtime, runtimes)
    known = [runtimes.parts[each] for each in runtime.spec.parts if each in runtimes.parts]
    serving = tuple(each for each in known if serves(each, owner))
    return chosen._replace(parts=serving, others=tuple(each for each in known if each not in serving), problems=gone)


def part_problems(runtime: Runtime, runtimes: Runtimes) -> tuple[Problem, ...]:
    """Parts that it names and that are not there."""
    return tuple(
        Problem(
            PART_GONE,
            f"runtime {runtime.number} names {each}, and there is no such part",
            Where(object=f"Runtime/{runtime.number}", field="spec.parts"),
            f"the parts are {', '.join(sorted(runtimes.parts))}" if runtimes.parts else "there are no parts",
        )
        for each in runtime.spec.parts
        if each not in runtimes.parts
    )


def _hold_gone(owner: Workload, hold: Hold, runtimes: Runtimes) -> Problem:
    return Problem(
        HOLD_GONE,
        f"it holds runtime {hold.runtime}, and there is no such runtime",
        _where(owner, "spec.hold.runtime"),
        f"the runtimes are {', '.join(map(str, runtimes.known))}",
        f"hold one of these, or leave hold out: it then gets {runtimes.current or runtimes.next}",
    )


def _runtime_gone(owner: Workload, number: int) -> Problem:
    return Problem(
        RUNTIME_GONE,
        f"it began with runtime {number}, which has been removed since",
        _where(owner),
        "it goes on as it is, and nothing of it can be changed",
        f"bring runtime {number} back until it has ended",
    )


def _where(owner: Workload, field: str = "") -> Where:
    return Where(object=owner.metadata.place, field=field)


def hold_left(owner: Workload, now: datetime) -> float | None:
    """Seconds until its hold ends; nothing where it has none, or none any more."""
    end = _end(owner.spec.hold) if owner.spec.hold else None
    return (end - now + timedelta.resolution).total_seconds() if end and now < end else None


def _end(hold: Hold) -> datetime | None:
    """The last moment of its last day, in UTC."""
    try:
        return datetime.combine(date.fromisoformat(hold.until), time.max, UTC)
    except ValueError:
        return None


def _broken(runtimes: Runtimes, turn: int) -> int:
    """Holds before this number do not count for a workload whose turn has come to `turn`."""
    roll = runtimes.known[turn].spec.roll if turn in runtimes.known else None
    return max(runtimes.unheld, turn if roll and roll.break_holds else 0)


def _unheld(known: Mapping[int, Runtime], current: int) -> int:
    rolls = ((number, each.spec.roll) for number, each in known.items() if number <= current)
    return max((number for number, roll in rolls if roll and roll.break_holds and not roll.stopped), default=0)


def _done(known: Mapping[int, Runtime]) -> int:
    return max((number for number, each in known.items() if each.status.done and not _stopped(each)), default=0)


def _newest(known: Mapping[int, Runtime]) -> int:
    """What a folder says, where nothing is ever done."""
    still = [number for number, each in known.items() if each.spec.roll is None]
    return max(still or known, default=0)


def _rolls(runtime: Runtime) -> bool:
    return runtime.spec.roll is not None and not runtime.status.done and not _stopped(runtime)


def _stopped(runtime: Runtime) -> bool:
    return bool(runtime.spec.roll and runtime.spec.roll.stopped)

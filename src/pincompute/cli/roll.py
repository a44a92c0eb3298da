"""`pin runtime roll`, `status` and `stop`: a runtime reaches every workload, wave by wave. The operator does it."""

from __future__ import annotations

import asyncio
import getpass
import sys
from collections import Counter
from contextlib import aclosing
from datetime import datetime
from typing import Any

import click
import msgspec

from pincompute.api.fleet import Fleet, Rolling
from pincompute.api.noun import Fault
from pincompute.api.runtime import Roll, RollProgress
from pincompute.api.status import OUTDATED, READY, SUCCEEDED, condition
from pincompute.api.workload import Workload
from pincompute.base import reasons
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Problem, Refused, Where, refuse_all
from pincompute.base.reasons import INTERNAL, REASONS
from pincompute.cli.live import Live, live
from pincompute.cli.port import Port
from pincompute.cli.roll_words import head, lasting
from pincompute.cli.table import table
from pincompute.cli.target import Target, connect, to_platform
from pincompute.planning.runtimes.age import OLD
from pincompute.planning.runtimes.roll import Fate, RollPlan, over
from pincompute.planning.runtimes.runtime import due

_BAR = 8
"""Characters of the bar that shows how far a wave is."""
_NAMED = 5
"""Workloads that a line names."""
_STANDS = {reasons.ROLL_UNHEALTHY.code, reasons.STOPPED.code, reasons.PART_GONE.code, reasons.PAUSED.code}
"""It does not go on by itself."""
_ON = "        on: pin runtime roll {}    back: pin runtime stop --back"
_MENDED = {
    "waves": "--waves 5,25,100",
    "unavailable": "--unavailable 10%",
    "breakHolds": "say which hole it closes: --security CVE-…",
}


def _percents(context: click.Context, option: click.Parameter, said: str | None) -> list[int] | None:
    try:
        return [int(each.rstrip("%")) for each in said.split(",")] if said else None
    except ValueError:
        raise click.BadParameter(f"'{said}' is not such as 5,25,100", context, option) from None


@click.command()
@click.argument("number", type=click.IntRange(1, 999_999))
@click.option("--security", help="The hole that it closes, such as CVE-2026-1234.")
@click.option("--break-holds", is_flag=True, help="Workloads that hold an older runtime get it too.")
@click.option("--waves", callback=_percents, help="Percent that has it after each wave; 5,25,100 by default.")
@click.option("--watch", "pause", type=click.IntRange(0), help="Seconds that a wave is watched; 600 by default.")
@click.option("--failures", type=click.IntRange(0), help="Workloads that may fail; 0 by default.")
@click.option("--unavailable", help="Copies of each that may be away at a time; 10% by default.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@to_platform
def roll(target: Target, number: int, *, yes: bool, **options: Any) -> None:
    """Roll runtime NUMBER out to every workload, wave by wave.

    What it does is shown first. An older NUMBER takes back those after it. Where it is interrupted, the roll goes on.
    """
    try:
        asyncio.run(_roll(target, number, _change(options), yes=yes))
    except KeyboardInterrupt:
        click.echo(f"\nruntime {number} is rolled out all the same        see: pin runtime status", err=True)


@click.command()
@to_platform
def status(target: Target) -> None:
    """Show the runtimes, who has them, and how a roll stands."""
    click.echo(_table(live(asyncio.run(_fleet(target)))))


@click.command()
@click.option("--back", is_flag=True, help="Everybody gets the runtime before again.")
@click.option("--because", default="", help="What others read, such as: logs-2 loses lines.")
@to_platform
def stop(target: Target, because: str, *, back: bool) -> None:
    """Keep the roll where it is, or take it back."""
    asyncio.run(_stop(target, _signed(because), back=back))


def _change(options: dict[str, Any]) -> dict[str, Any]:
    """Only what is said; who rolls one that was stopped wants it to go on."""
    names = {"pause": "pauseSeconds", "break_holds": "breakHolds"}
    there = ((name, value) for name, value in options.items() if value is not None and value is not False)
    said = {names.get(name, name): value for name, value in there}
    return {**said, "paused": None, "stopped": None}


async def _roll(target: Target, number: int, change: dict[str, Any], *, yes: bool) -> None:
    async with connect(target) as platform:
        fleet = live(await platform.fleet())
        before = fleet.known(number).spec.roll or Roll()
        later = _after(fleet, number)
        if number == fleet.runtimes.current and not later:
            click.echo(f"runtime {number} is current already: everybody has it")
            return
        if later:
            await _back(platform, number, later)
            return
        planned = fleet.plan(number, _rolled(before, change))
        click.echo(_head(planned), err=True)
        refuse_all(planned.problems)
        if not yes and sys.stdin.isatty():
            click.confirm("roll it out?", abort=True, err=True)
        await platform.change_roll(number, change)
        await _follow(platform, number)


def _rolled(before: Roll, change: dict[str, Any]) -> Roll:
    """As the cluster will have it; what is wrong with it is told before anything is written."""
    said = {**msgspec.to_builtins(before), **change}
    rolled = msgspec.convert({name: value for name, value in said.items() if value is not None}, Roll)
    refuse_all(_typed(each) for each in rolled.faults())
    return rolled


def _typed(fault: Fault) -> Problem:
    """As a person who typed it would mend it, and not in a file."""
    next_ = _MENDED.get(str(fault.path[0]), fault.next)
    return Problem(reasons.DOCUMENT_INVALID, fault.what, note=fault.note, next=next_)


def _after(fleet: Live, number: int) -> list[int]:
    """Those that stand in the way of an older one: rolled out since, or on their way."""
    rolls = ((each, known.spec.roll) for each, known in fleet.runtimes.known.items())
    return [each for each, roll in rolls if each > number and roll and not roll.stopped]


async def _back(platform: Port, number: int, later: list[int]) -> None:
    for each in sorted(later, reverse=True):
        await platform.change_roll(each, {"stopped": _signed(f"back to runtime {number}")})
    click.echo(f"{_named(later)} taken back: everybody gets runtime {number} again        see: pin runtime status")


async def _stop(target: Target, why: str, *, back: bool) -> None:
    async with connect(target) as platform:
        fleet = live(await platform.fleet())
        number = fleet.runtimes.next
        if not number:
            what = "no runtime is being rolled out"
            raise Refused(Problem(reasons.ROLL_UNKNOWN, what, next="pin runtime status"))
        roll = fleet.known(number).spec.roll
        paused = roll.paused if roll and not back else ""
        if paused:
            click.echo(f"runtime {number} stays where it is already, by {paused}{_ON.format(number)}")
            return
        await platform.change_roll(number, {"stopped": why} if back else {"paused": why})
    if back:
        before = fleet.runtimes.current
        click.echo(f"runtime {number} is taken back: everybody gets {f'runtime {before}' if before else 'none'} again")
    else:
        click.echo(f"runtime {number} stays where it is{_ON.format(number)}")


async def _follow(platform: Port, number: int) -> None:
    """One line that changes on a terminal, a line for each change elsewhere."""
    alone = sys.stderr.isatty()
    last = ""
    async with aclosing(platform.follow_roll(number)) as told:
        async for now in told:
            line = _line(now)
            if line != last:
                click.echo(f"\r{line}\033[K" if alone else line, nl=not alone, err=True)
                last = line
            if now.current or now.reason in _STANDS:
                if alone:
                    click.echo(err=True)
                break
        else:
            raise Refused(Problem(reasons.RUNTIME_UNKNOWN, f"runtime {number} was deleted while it was followed"))
    if not now.current:
        raise Refused(_why(now))
    click.echo(f"runtime {number} is current")


def _line(now: Rolling) -> str:
    progress = msgspec.convert(now.progress, RollProgress)
    if not now.wave or not progress.reached:
        return now.message or f"runtime {now.number}: the operator has not looked at it yet"
    done = _BAR * progress.there // progress.reached
    broken = len(progress.broken)
    return (
        f"wave {now.wave} {'#' * done}{'.' * (_BAR - done)}  {progress.in_place}/{progress.pods} in place,"
        f" {progress.replaced} replaced, {broken} {'budget' if broken == 1 else 'budgets'} broken"
        "    stop: pin runtime stop"
    )


def _why(now: Rolling) -> Problem:
    where = Where(object=f"Runtime/{now.number}")
    return Problem(REASONS.get(now.reason, INTERNAL), now.message, where, next=now.next or "pin runtime stop --back")


def _head(planned: RollPlan) -> str:
    counts = ((fate, planned.of(fate)) for fate in Fate)
    fates = ", ".join(f"{len(lines)} {fate}" for fate, lines in counts if lines) or "no workloads"
    waves = f"{len(planned.waves)} wave{'' if len(planned.waves) == 1 else 's'}"
    return f"{head(planned)}\n{fates}; {waves}, about {lasting(planned.seconds)}"


def _table(fleet: Live) -> str:
    now = SystemClock().now()
    have = Counter(_has(fleet, each, now) for each in fleet.workloads if not over(each))
    rows = [_row(fleet, number, have[number]) for number in fleet.runtimes.known]
    left = f"\n{have[0]} workloads have none" if have[0] else ""
    return table([["RUNTIME", "PARTS", "IS", "WAVE", "WORKLOADS", "SAYS"], *rows], left=6) + left + _old(fleet)


def _has(fleet: Live, owner: Workload, now: datetime) -> int:
    """Pods of work that runs may have got where they are what its natives will never have."""
    said = owner.status
    all_of_them = owner.GOAL == SUCCEEDED and 0 < said.renewed == said.replicas
    return due(owner, fleet.runtimes, now).number if all_of_them else said.runtime


def _old(fleet: Live) -> str:
    """What nobody looks at until it is told."""
    old = sorted(each.metadata.place for each in fleet.workloads if condition(each.status.conditions, OUTDATED))
    if not old:
        return ""
    more = f" and {len(old) - _NAMED} more" if len(old) > _NAMED else ""
    have = "has" if len(old) == 1 else "have"
    return (
        f"\n{len(old)} {have} copies of a runtime that was replaced more than {OLD.days} days ago:"
        f" {', '.join(old[:_NAMED])}{more}        see: pin why NAME"
    )


def _row(fleet: Live, number: int, workloads: int) -> list[str]:
    this, runtimes = fleet.runtimes.known[number], fleet.runtimes
    held = any(each.spec.hold and each.spec.hold.runtime == number for each in fleet.workloads)
    # Work that runs keeps what it began with, where other images are not all that is new.
    left = ("held" if held else "left") if workloads else "-"
    is_ = {runtimes.current: "current", runtimes.next: "next"}.get(number, left)
    said = condition(this.status.conditions, READY)
    message = said.message if said else "the operator has not looked at it yet"
    return [str(number), " ".join(this.spec.parts), is_, this.status.wave or "-", str(workloads), message]


async def _fleet(target: Target) -> Fleet:
    async with connect(target) as platform:
        return await platform.fleet()


def _signed(why: str) -> str:
    """Who it was, for others to read."""
    try:
        person = getpass.getuser()
    except (KeyError, OSError):
        # An account without a name, as containers have.
        person = "somebody"
    return f"{person}: {why}" if why else person


def _named(numbers: list[int]) -> str:
    return f"runtime {numbers[0]} is" if len(numbers) == 1 else f"runtimes {', '.join(map(str, numbers))} are"

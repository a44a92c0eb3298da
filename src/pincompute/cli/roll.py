"""`pin runtime roll`, `status` and `stop`: start, watch and stop the roll of a runtime; the operator carries it out."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import click
import msgspec

from pincompute.api.custom_resource import FieldError
from pincompute.api.fleet import RollStatus
from pincompute.api.runtime import Roll, RollProgress
from pincompute.api.status import OUTDATED, find_condition
from pincompute.base import reasons
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Problem, Refused, Where, refuse_all
from pincompute.base.reasons import INTERNAL, find_reason
from pincompute.base.reasons.runtimes import PINNED_REVISION_MISSING
from pincompute.cli.change import local_user
from pincompute.cli.durations import format_estimate
from pincompute.cli.fleet_state import FleetState, fetch_fleet_state, fleet_state_of
from pincompute.cli.platform_client import PlatformClient
from pincompute.cli.runtime_list import runtime_table, runtime_views, workloads_by_runtime
from pincompute.cli.target import Target, connect, platform_options
from pincompute.planning.runtimes.outdated import OUTDATED_AFTER
from pincompute.planning.runtimes.roll_preview import RollEffect, RollPlan

_BAR_WIDTH = 8
_MAX_NAMED = 5
"""Workloads that a line names before it counts the rest."""
_HALTED_REASONS = {
    reasons.ROLL_UNHEALTHY.code,
    reasons.ROLL_STOPPED.code,
    reasons.PART_MISSING.code,
    PINNED_REVISION_MISSING.code,
    reasons.PAUSED.code,
}
"""Reasons for which a roll does not continue by itself."""
_HALTED_HINT = "        continue: pin runtime roll {}    roll back: pin runtime stop --back"
_OPTION_REMEDIES = {
    "waves": "--waves 5,25,100",
    "unavailable": "--unavailable 10%",
    "breakHolds": "name the vulnerability: --security CVE-…",
}
"""Remedies for errors in fields of a roll, by options."""


def _parse_percentages(context: click.Context, option: click.Parameter, value: str | None) -> list[int] | None:
    try:
        return [int(each.rstrip("%")) for each in value.split(",")] if value else None
    except ValueError:
        raise click.BadParameter(f"'{value}' must be percentages such as 5,25,100", context, option) from None


@click.command()
@click.argument("number", type=click.IntRange(1, 999_999))
@click.option("--security", help="Vulnerability that it fixes, such as CVE-2026-1234.")
@click.option("--break-holds", is_flag=True, help="Include workloads pinned to an older runtime; needs --security.")
@click.option(
    "--waves", callback=_parse_percentages, help="Percentage of workloads reached by each wave; 5,25,100 by default."
)
@click.option("--watch", "pause", type=click.IntRange(0), help="Seconds to watch each wave; 600 by default.")
@click.option("--failures", type=click.IntRange(0), help="Failed workloads that do not stop the roll; 0 by default.")
@click.option("--unavailable", help="Share of a workload's replicas unavailable at a time; 10% by default.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@platform_options
def roll(target: Target, number: int, *, yes: bool, **options: Any) -> None:
    """Roll runtime NUMBER out to every workload, wave by wave.

    Its effect is shown first. An older NUMBER rolls back all newer runtimes. An interrupt ends this command, and the
    roll continues.
    """
    try:
        asyncio.run(_roll(target, number, _roll_change(options), yes=yes))
    except KeyboardInterrupt:
        click.echo(
            f"\nthe roll of runtime {number} continues in the background        see: pin runtime status", err=True
        )


@click.command()
@platform_options
def status(target: Target) -> None:
    """Show the runtimes, their workloads and the progress of a roll."""
    click.echo(_format_status(asyncio.run(fetch_fleet_state(target))))


@click.command()
@click.option("--back", is_flag=True, help="Roll all workloads back to the previous runtime.")
@click.option("--because", default="", help="Reason, shown in the runtime's status.")
@platform_options
def stop(target: Target, because: str, *, back: bool) -> None:
    """Pause the current roll, or roll it back."""
    asyncio.run(_stop(target, _attributed(because), back=back))


def _roll_change(options: dict[str, Any]) -> dict[str, Any]:
    """Return the given options as fields of the roll; a pause or stop is always lifted, to start or resume it."""
    names = {"pause": "pauseSeconds", "break_holds": "breakHolds"}
    given = ((name, value) for name, value in options.items() if value is not None and value is not False)
    fields = {names.get(name, name): value for name, value in given}
    return {**fields, "paused": None, "stopped": None}


async def _roll(target: Target, number: int, change: dict[str, Any], *, yes: bool) -> None:
    async with connect(target) as platform:
        fleet = fleet_state_of(await platform.fleet())
        previous = fleet.runtime(number).spec.roll or Roll()
        newer = _newer_rolls(fleet, number)
        if number == fleet.runtimes.current and not newer:
            click.echo(f"runtime {number} is already current on all workloads")
            return
        if newer:
            await _roll_back(platform, number, newer)
            return
        plan = fleet.plan_roll_of(number, _apply_change(previous, change))
        click.echo(_format_effect(plan), err=True)
        refuse_all(plan.problems)
        if not yes and sys.stdin.isatty():
            click.confirm("Roll it out?", abort=True, err=True)
        await platform.change_roll(number, change)
        await _follow_roll(platform, number)


def _apply_change(previous: Roll, change: dict[str, Any]) -> Roll:
    """Apply a change locally, to find its errors before anything is written."""
    fields = {**msgspec.to_builtins(previous), **change}
    changed = msgspec.convert({name: value for name, value in fields.items() if value is not None}, Roll)
    refuse_all(_option_problem(each) for each in changed.field_errors())
    return changed


def _option_problem(error: FieldError) -> Problem:
    """Name an option as remedy, where the error itself names a field of a file."""
    next_ = _OPTION_REMEDIES.get(str(error.path[0]), error.next)
    return Problem(reasons.DOCUMENT_INVALID, error.what, note=error.note, next=next_)


def _newer_rolls(fleet: FleetState, number: int) -> list[int]:
    """Return newer runtimes that are rolled out or being rolled out, and must be stopped for an older one."""
    rolls = ((each, runtime.spec.roll) for each, runtime in fleet.runtimes.by_number.items())
    return [each for each, roll in rolls if each > number and roll and not roll.stopped]


async def _roll_back(platform: PlatformClient, number: int, newer: list[int]) -> None:
    for runtime in sorted(newer, reverse=True):
        await platform.change_roll(runtime, {"stopped": _attributed(f"back to runtime {number}")})
    stopped = f"runtime{'' if len(newer) == 1 else 's'} {', '.join(map(str, newer))}"
    click.echo(f"{stopped} stopped: rolling back to runtime {number}        see: pin runtime status")


async def _stop(target: Target, because: str, *, back: bool) -> None:
    async with connect(target) as platform:
        fleet = fleet_state_of(await platform.fleet())
        number = fleet.runtimes.next
        if not number:
            what = "no runtime is being rolled out"
            raise Refused(Problem(reasons.ROLL_UNKNOWN, what, next="pin runtime status"))
        roll = fleet.runtime(number).spec.roll
        paused = roll.paused if roll and not back else ""
        if paused:
            click.echo(f"the roll of runtime {number} is already paused by {paused}{_HALTED_HINT.format(number)}")
            return
        await platform.change_roll(number, {"stopped": because} if back else {"paused": because})
    if back:
        current = f"runtime {fleet.runtimes.current}" if fleet.runtimes.current else "no runtime"
        click.echo(f"the roll of runtime {number} is stopped: rolling back to {current}")
    else:
        click.echo(f"the roll of runtime {number} is paused{_HALTED_HINT.format(number)}")


async def _follow_roll(platform: PlatformClient, number: int) -> None:
    """Print one line that is redrawn on a terminal, and elsewhere one line for each change."""
    redraw = sys.stderr.isatty()
    last_line = ""
    async with aclosing(platform.follow_roll(number)) as states:
        async for state in states:
            line = _format_progress(state)
            if line != last_line:
                click.echo(f"\r{line}\033[K" if redraw else line, nl=not redraw, err=True)
                last_line = line
            if state.is_current or state.reason in _HALTED_REASONS:
                if redraw:
                    click.echo(err=True)
                break
        else:
            raise Refused(Problem(reasons.RUNTIME_UNKNOWN, f"runtime {number} was deleted during its roll"))
    if not state.is_current:
        raise Refused(_halted_problem(state))
    click.echo(f"runtime {number} is current")


def _format_progress(state: RollStatus) -> str:
    progress = msgspec.convert(state.progress, RollProgress)
    if not state.wave or not progress.reached:
        return state.message or f"runtime {state.number}: not reconciled by the operator yet"
    filled = _BAR_WIDTH * progress.healthy // progress.reached
    exceeded = len(progress.over_unavailable)
    return (
        f"wave {state.wave} {'#' * filled}{'.' * (_BAR_WIDTH - filled)}  {progress.in_place}/{progress.pods} in place,"
        f" {progress.replaced} replaced, {exceeded} over --unavailable"
        "    stop: pin runtime stop"
    )


def _halted_problem(state: RollStatus) -> Problem:
    where = Where(object=f"Runtime/{state.number}")
    next_ = state.next or "pin runtime stop --back"
    return Problem(find_reason(state.reason) or INTERNAL, state.message, where, next=next_)


def roll_title(plan: RollPlan) -> str:
    after = f" after {plan.previous}" if plan.previous else ""
    return f"Runtime {plan.number}{after}: {', '.join(plan.part_changes) or 'the same parts'}"


def effect_title(effect: RollEffect) -> str:
    """Users read `pinned`; `held` is the spelling of the field `hold` and of the JSON output."""
    return "pinned" if effect is RollEffect.HELD else str(effect)


def _format_effect(plan: RollPlan) -> str:
    counts = ((effect_title(each), len(plan.with_effect(each))) for each in RollEffect)
    effects = ", ".join(f"{count} {effect}" for effect, count in counts if count) or "no workloads"
    waves = f"{len(plan.waves)} wave{'' if len(plan.waves) == 1 else 's'}"
    return f"{roll_title(plan)}\n{effects}; {waves}, about {format_estimate(plan.seconds)}"


def _format_status(fleet: FleetState) -> str:
    now = SystemClock().now()
    unknown = workloads_by_runtime(fleet, now)[0]
    without = f"\n{unknown} workloads have no runtime" if unknown else ""
    return runtime_table(runtime_views(fleet, now)) + without + _outdated_note(fleet)


def _outdated_note(fleet: FleetState) -> str:
    outdated = [each for each in fleet.workloads if find_condition(each.status.conditions, OUTDATED)]
    if not outdated:
        return ""
    have = "workload has" if len(outdated) == 1 else "workloads have"
    return (
        f"\n{len(outdated)} {have} replicas of a runtime that was replaced more than {OUTDATED_AFTER.days} days ago:"
        f" {_named(sorted(each.metadata.key for each in outdated))}        see: pin why NAME"
    )


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return f"{', '.join(names[:_MAX_NAMED])}{more}"


def _attributed(because: str) -> str:
    user = local_user() or "unknown user"
    return f"{user}: {because}" if because else user

"""`pin runtime plan`: previews the effect of a runtime on every workload."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click

from pincompute.api.custom_resource import CustomResource
from pincompute.api.validation import parse_resources
from pincompute.api.workload import Workload
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import RUNTIME_UNKNOWN
from pincompute.cli.durations import format_estimate
from pincompute.cli.files import read_files
from pincompute.cli.fleet_state import fetch_fleet_state
from pincompute.cli.output import as_json, as_yaml
from pincompute.cli.roll import effect_title, roll, roll_title, status, stop
from pincompute.cli.runtime_list import list_runtimes
from pincompute.cli.runtime_who import who
from pincompute.cli.table import format_table
from pincompute.cli.target import Target, platform_options
from pincompute.objects.quantity import format_bytes, format_cores
from pincompute.planning.diagnosis.excerpts import join_first_few
from pincompute.planning.pods.templates import ResourceUse
from pincompute.planning.runtimes.roll_preview import (
    IN_PLACE_ESTIMATE_S,
    REPLACE_ESTIMATE_S,
    RollEffect,
    RollPlan,
    WorkloadEffect,
    plan_roll,
    roll_plan_json,
)
from pincompute.planning.runtimes.selection import Runtimes
from pincompute.planning.runtimes.waves import DAEMONS_FIRST
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.views.plan_preview import PlanningInputs

_MAX_PINNED_LISTED = 10
"""Pinned workloads that are listed; `-o yaml` lists all."""


@click.group()
def runtime() -> None:
    """Roll out a new runtime, and show its effect on every workload."""


@runtime.command("plan")
@click.argument("number", type=click.IntRange(1, 999_999))
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--output", "-o", type=click.Choice(["yaml", "json"]), help="Every workload, for programs.")
@platform_options
def plan_command(target: Target, number: int, files: tuple[Path, ...], output: str | None) -> None:
    """Show the effect of runtime NUMBER on every workload.

    Nothing is changed. With FILES no cluster is asked: the files hold the runtimes, their parts and the workloads, and
    the newest runtime before NUMBER counts as current. A folder stands for the files in it. Exits with 1 if a workload
    would be refused.
    """
    if files:
        plan = _plan_files(number, parse_resources(read_files(files), target.project))
    else:
        plan = asyncio.run(fetch_fleet_state(target)).plan_roll_of(number)
    click.echo(_format_plan(plan, output), nl=False)
    if plan.problems or plan.with_effect(RollEffect.REFUSED):
        raise SystemExit(1)


def _plan_files(number: int, resources: Sequence[CustomResource]) -> RollPlan:
    inputs = PlanningInputs.of(resources)
    known = inputs.runtimes.by_number
    if number not in known:
        note = (
            f"the runtimes in these files are {', '.join(map(str, known))}" if known else "no runtimes in these files"
        )
        raise Refused(Problem(RUNTIME_UNKNOWN, f"no runtime {number}", note=note))
    runtimes = inputs.runtimes.after_roll(_newest_before(number, inputs.runtimes))
    now = SystemClock().now()
    workloads = (each for each in resources if isinstance(each, Workload))
    snapshots = (
        Snapshot(
            each,
            (),
            (),
            inputs.cluster,
            now,
            inputs.projects.get(each.metadata.namespace),
            runtimes,
            natives_known=False,
        )
        for each in workloads
    )
    return plan_roll(number, runtimes, snapshots)


def _newest_before(number: int, runtimes: Runtimes) -> int:
    """Stand in for the current runtime, which files do not tell."""
    return max((each for each in runtimes.by_number if each < number), default=0)


def _format_plan(plan: RollPlan, output: str | None) -> str:
    if output == "json":
        return as_json(roll_plan_json(plan))
    if output == "yaml":
        return as_yaml(roll_plan_json(plan))
    sections = (
        roll_title(plan),
        _format_problems(plan),
        _effects_table(plan),
        _pinned_workloads(plan),
        _waves_table(plan),
        _format_timing(plan),
    )
    return "\n\n".join(each for each in sections if each) + "\n"


def _format_problems(plan: RollPlan) -> str:
    refused = plan.with_effect(RollEffect.REFUSED)
    problems = [*plan.problems, *(problem for each in refused for problem in each.problems)]
    return "\n".join(each.text() for each in problems)


def _effects_table(plan: RollPlan) -> str:
    """Format a row for each owner and tier."""
    groups: dict[tuple[str, str], list[WorkloadEffect]] = {}
    for effect in plan.effects:
        groups.setdefault((effect.owner, effect.tier), []).append(effect)
    kinds = [kind for kind in RollEffect if plan.with_effect(kind)]
    header = ["OWNER", "TIER", "WORKLOADS", *(effect_title(each).upper() for each in kinds), "PODS", "CPU", "MEMORY"]
    rows = [[*group, *_effects_row(effects, kinds)] for group, effects in groups.items()]
    if len(rows) > 1:
        rows.append(["all", "", *_effects_row(plan.effects, kinds)])
    return format_table([header, *rows], text_columns=2)


def _effects_row(effects: Sequence[WorkloadEffect], kinds: Sequence[RollEffect]) -> list[str]:
    counts = [sum(each.effect == kind for each in effects) for kind in kinds]
    change = ResourceUse()
    for effect in effects:
        change = change.plus(effect.resource_change)
    pods = sum(each.pods for each in effects)
    numbers = [str(each or "-") for each in (len(effects), *counts, pods)]
    return [*numbers, _with_sign(format_cores(change.cpu)), _with_sign(format_bytes(change.memory))]


def _with_sign(amount: str) -> str:
    return "-" if amount in {"0", ""} else amount if amount.startswith("-") else f"+{amount}"


def _pinned_workloads(plan: RollPlan) -> str:
    pinned = sorted(plan.with_effect(RollEffect.HELD), key=lambda each: (each.held_until, each.project, each.name))
    lines = [f"pinned until {each.held_until}: {each.project}/{each.name}" for each in pinned[:_MAX_PINNED_LISTED]]
    rest = len(pinned) - _MAX_PINNED_LISTED
    return "\n".join([*lines, *([f"and {rest} more: -o yaml"] if rest > 0 else [])])


def _waves_table(plan: RollPlan) -> str:
    if plan.is_rollback:
        return ""
    rows = [
        [
            str(number),
            each.wave.text(plan.roll),
            str(each.workloads or "-"),
            str(each.pods or "-"),
            format_estimate(each.seconds),
        ]
        for number, each in enumerate(plan.waves, 0 if plan.waves[0].wave.percent == DAEMONS_FIRST else 1)
    ]
    table = format_table([["WAVE", "REACHES", "WORKLOADS", "PODS", "DURATION"], *rows], text_columns=2)
    names = ["NAMES", *(join_first_few(each.names) if each.names else "-" for each in plan.waves)]
    return "\n".join(f"{line}  {text}" for line, text in zip(table.splitlines(), names, strict=True))


def _format_timing(plan: RollPlan) -> str:
    roll = plan.roll
    waves = (
        "a rollback reaches all workloads at once"
        if plan.is_rollback
        else f"each wave lasts as long as its slowest workload, and {format_estimate(roll.pause_seconds)} to watch it"
    )
    return (
        f"about {format_estimate(plan.seconds)}: {waves};\n"
        f"in each workload {roll.unavailable} of the pods at a time,"
        f" {REPLACE_ESTIMATE_S} s to replace a pod, {IN_PLACE_ESTIMATE_S} s to update one in place"
    )


for command in (list_runtimes, roll, status, stop, who):
    runtime.add_command(command)

"""`pin runtime plan`: what a runtime will do to every workload, before it does."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click

from pincompute.api.admission import admit_all
from pincompute.api.fleet import Fleet
from pincompute.api.noun import Noun
from pincompute.api.workload import Workload
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import RUNTIME_UNKNOWN
from pincompute.cli.files import documents
from pincompute.cli.live import live
from pincompute.cli.output import as_json, as_yaml
from pincompute.cli.roll import roll, status, stop
from pincompute.cli.roll_words import head, lasting
from pincompute.cli.table import table
from pincompute.cli.target import Target, connect, to_platform
from pincompute.cli.who import who
from pincompute.objects.quantity import binary, cores
from pincompute.planning.people.preview import Surroundings
from pincompute.planning.pods.templates import Use
from pincompute.planning.runtimes.roll import IN_PLACE, REPLACING, Fate, Line, RollPlan, plan_roll, shape
from pincompute.planning.runtimes.runtime import Runtimes
from pincompute.planning.snapshot import Snapshot

_SHOWN = 10
"""Held workloads that are named; `-o yaml` names all."""


@click.group()
def runtime() -> None:
    """Roll a new runtime out, and show what it does to every workload."""


@runtime.command("plan")
@click.argument("number", type=click.IntRange(1, 999_999))
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--output", "-o", type=click.Choice(["yaml", "json"]), help="Every workload, for programs.")
@to_platform
def plan_command(target: Target, number: int, files: tuple[Path, ...], output: str | None) -> None:
    """Show what runtime NUMBER will do to every workload.

    Nothing is done. With FILES no cluster is asked: they hold the runtimes, their parts and the workloads, and the
    newest runtime before NUMBER is what everybody has. A folder stands for the files in it. Ends with 1 where a
    workload would be refused.
    """
    planned = _of_files(number, admit_all(documents(files), target.project)) if files else _live(target, number)
    click.echo(_rendered(planned, output), nl=False)
    if planned.problems or planned.of(Fate.REFUSED):
        raise SystemExit(1)


def _live(target: Target, number: int) -> RollPlan:
    return live(asyncio.run(_fleet(target))).plan(number)


async def _fleet(target: Target) -> Fleet:
    async with connect(target) as platform:
        return await platform.fleet()


def _of_files(number: int, given: Sequence[Noun]) -> RollPlan:
    around = Surroundings.of(given)
    known = around.runtimes.known
    if number not in known:
        note = f"the runtimes in these files are {', '.join(map(str, known))}" if known else "these files hold none"
        raise Refused(Problem(RUNTIME_UNKNOWN, f"there is no runtime {number}", note=note))
    runtimes = around.runtimes.finished(_before(number, around.runtimes))
    now = SystemClock().now()
    workloads = (each for each in given if isinstance(each, Workload))
    snapshots = (
        Snapshot(each, (), (), around.cluster, now, around.projects.get(each.metadata.namespace), runtimes)
        for each in workloads
    )
    return plan_roll(number, runtimes, snapshots)


def _before(number: int, runtimes: Runtimes) -> int:
    """Files do not say what was rolled out: the newest one before is taken to be."""
    return max((each for each in runtimes.known if each < number), default=0)


def _rendered(planned: RollPlan, output: str | None) -> str:
    if output == "json":
        return as_json(shape(planned))
    if output == "yaml":
        return as_yaml(shape(planned))
    told = (head(planned), _refused(planned), _table(planned), _held(planned), _waves(planned), _words(planned))
    return "\n\n".join(each for each in told if each) + "\n"


def _refused(planned: RollPlan) -> str:
    """First of all: what must be mended before it is rolled."""
    problems = [*planned.problems, *(problem for each in planned.of(Fate.REFUSED) for problem in each.problems)]
    return "\n".join(each.text() for each in problems)


def _table(planned: RollPlan) -> str:
    """A row for every owner and tier."""
    groups: dict[tuple[str, str], list[Line]] = {}
    for each in planned.lines:
        groups.setdefault((each.owner, each.tier), []).append(each)
    fates = [fate for fate in Fate if planned.of(fate)]
    head = ["owner", "tier", "workloads", *map(str, fates), "pods", "cpu", "memory"]
    rows = [[*group, *_row(lines, fates)] for group, lines in groups.items()]
    if len(rows) > 1:
        rows.append(["all", "", *_row(planned.lines, fates)])
    return table([head, *rows], left=2)


def _row(lines: Sequence[Line], fates: Sequence[Fate]) -> list[str]:
    counts = [sum(each.fate == fate for each in lines) for fate in fates]
    change = Use()
    for each in lines:
        change = change.plus(each.change)
    pods = sum(each.pods for each in lines)
    numbers = [str(each or "-") for each in (len(lines), *counts, pods)]
    return [*numbers, _signed(cores(change.cpu)), _signed(binary(change.memory))]


def _signed(amount: str) -> str:
    return "-" if amount in {"0", ""} else amount if amount.startswith("-") else f"+{amount}"


def _held(planned: RollPlan) -> str:
    held = sorted(planned.of(Fate.HELD), key=lambda each: (each.until, each.project, each.name))
    lines = [f"held until {each.until}: {each.project}/{each.name}" for each in held[:_SHOWN]]
    more = [f"and {len(held) - _SHOWN} more: -o yaml"] if len(held) > _SHOWN else []
    return "\n".join([*lines, *more])


def _waves(planned: RollPlan) -> str:
    if planned.back:
        return ""
    rows = [
        [
            str(place),
            each.wave.words(planned.roll),
            str(each.workloads or "-"),
            str(each.pods or "-"),
            lasting(each.seconds),
        ]
        for place, each in enumerate(planned.waves, 1)
    ]
    return table([["wave", "reaches", "changes", "pods", "takes"], *rows], left=2)


def _words(planned: RollPlan) -> str:
    roll = planned.roll
    whole = (
        "everybody gets it at once, as what was rolled out since is taken back"
        if planned.back
        else f"a wave takes as long as its longest workload, and is then watched for {lasting(roll.pause_seconds)}"
    )
    return (
        f"about {lasting(planned.seconds)}: {whole};\n"
        f"a workload gets it {roll.unavailable} of its pods at a time, {REPLACING} s each time where pods are replaced,"
        f" {IN_PLACE} s where a container is"
    )


for each in (roll, status, stop, who):
    runtime.add_command(each)

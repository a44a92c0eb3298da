"""`pin break`: a real fault is put on a workload, so that anyone can see what `pin why` makes of it."""

from __future__ import annotations

import asyncio
import random
import secrets

import click

from pincompute.api.change import Break
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import FAULT_UNKNOWN, USAGE
from pincompute.cli.change import edited, myself
from pincompute.cli.offered import workload_names
from pincompute.cli.table import table
from pincompute.cli.target import Target, connect, to_platform
from pincompute.cli.word import plain, word
from pincompute.planning.faults.catalogue import Fault, fitting


@click.command("break")
@click.argument("workload", shell_complete=workload_names)
@click.argument("fault", default="")
@click.option("--random", "randomly", is_flag=True, help="Any one, and do not say which.")
@click.option("--seed", type=int, default=None, help="Choose the same one again.")
@to_platform
def break_(target: Target, workload: str, fault: str, *, randomly: bool, seed: int | None) -> None:
    """Put a real fault on a workload, to see it told.

    Without FAULT, list those that there are for it. `pin heal` makes it well again; so should what `pin why` says.
    """
    if fault and randomly:
        raise Refused(Problem(USAGE, "FAULT and --random both say which", next="leave one of the two out"))
    asyncio.run(_break(target, workload, fault, seed, randomly=randomly))


async def _break(target: Target, said: str, fault: str, seed: int | None, *, randomly: bool) -> None:
    async with connect(target) as platform:
        asked = word(said)
        found = await platform.find(target.project, asked.name)
        asked.must_be(found.kind)
        if not fault and not randomly:
            click.echo(table([(each.name, each.about) for each in _fitting(found)], left=2))
            return
        if randomly:
            seed = secrets.randbelow(10_000) if seed is None else seed
            fault = random.Random(seed).choice(_fitting(found)).name  # noqa: S311  (a seed is to choose the same again)
        changed = await edited(platform, target.project, said, Break(by=myself(), fault=fault, silently=randomly))
        again = f"        the same again: --seed {seed}" if randomly else ""
        click.echo(f"next: pin why {changed.summary.name}{again}", err=True)


def _fitting(workload: Workload) -> tuple[Fault, ...]:
    faults = fitting(workload)
    if not faults:
        raise Refused(Problem(FAULT_UNKNOWN, f"there is no fault for a {plain(workload.kind)} yet"))
    return faults

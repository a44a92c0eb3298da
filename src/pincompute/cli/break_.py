"""`pin break`: injects a real fault into a workload, to practise finding it with `pin why`."""

from __future__ import annotations

import asyncio
import random
import secrets

import click

from pincompute.api.change import Break
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import FAULT_UNKNOWN, USAGE
from pincompute.cli.change import local_user, submit_change
from pincompute.cli.completions import complete_workload_names
from pincompute.cli.table import format_table
from pincompute.cli.target import Target, connect, platform_options
from pincompute.cli.workload_ref import fetch_workload, parse_workload_ref, short_kind
from pincompute.planning.faults.catalogue import Fault, applicable_faults


@click.command("break")
@click.argument("workload", shell_complete=complete_workload_names)
@click.argument("fault", default="")
@click.option("--random", "randomly", is_flag=True, help="Choose a fault at random and do not name it.")
@click.option("--seed", type=int, default=None, help="Seed of --random: the same seed chooses the same fault.")
@platform_options
def break_(target: Target, workload: str, fault: str, *, randomly: bool, seed: int | None) -> None:
    """Inject a real fault into a workload, to see it diagnosed.

    Without FAULT, list the faults that apply to the workload. `pin heal` removes the fault; so should the next step
    that `pin why` names.
    """
    if fault and randomly:
        raise Refused(Problem(USAGE, "FAULT and --random exclude each other", next="leave one of the two out"))
    asyncio.run(_inject_fault(target, workload, fault, seed, randomly=randomly))


async def _inject_fault(target: Target, text: str, fault: str, seed: int | None, *, randomly: bool) -> None:
    async with connect(target) as platform:
        ref = parse_workload_ref(text)
        workload = await fetch_workload(platform, target.project, ref)
        if not fault and not randomly:
            rows = [(each.name, each.description) for each in _faults_of(workload)]
            click.echo(format_table(rows, text_columns=2))
            return
        if randomly:
            seed = secrets.randbelow(10_000) if seed is None else seed
            fault = random.Random(seed).choice(_faults_of(workload)).name  # noqa: S311  (a seed repeats the choice)
        change = Break(by=local_user(), fault=fault, silently=randomly)
        result = await submit_change(platform, target.project, text, change)
        repeat = f"        the same again: --seed {seed}" if randomly else ""
        click.echo(f"next: pin why {result.summary.name}{repeat}", err=True)


def _faults_of(workload: Workload) -> tuple[Fault, ...]:
    faults = applicable_faults(workload)
    if not faults:
        raise Refused(Problem(FAULT_UNKNOWN, f"no fault applies to a {short_kind(workload.kind)} yet"))
    return faults

"""`pin delete`: workloads end, and what they became goes with them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

import click

from pincompute.api.summary import Summary, unknown_workload
from pincompute.base.problem import refuse_all
from pincompute.cli.offered import workload_names
from pincompute.cli.port import Port
from pincompute.cli.target import Target, connect, to_platform
from pincompute.cli.word import Word, plain, word


@click.command()
@click.argument("workloads", nargs=-1, required=True, shell_complete=workload_names)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@to_platform
def delete(target: Target, workloads: tuple[str, ...], *, yes: bool) -> None:
    """End workloads and remove what they became.

    On a terminal it shows what goes, and asks.
    """
    asyncio.run(_delete(target, [word(each) for each in workloads], ask=not yes and sys.stdin.isatty()))


async def _delete(target: Target, asked: Sequence[Word], *, ask: bool) -> None:
    async with connect(target) as platform:
        chosen = await _chosen(platform, target.project, asked)
        if ask:
            for each in chosen:
                click.echo(_shown(each), err=True)
            click.confirm(f"Delete {'it' if len(chosen) == 1 else f'all {len(chosen)}'}?", abort=True, err=True)
        for each in chosen:
            await platform.delete(target.project, each.name, each.uid)
            click.echo(f"{each.name} deleted")


async def _chosen(platform: Port, project: str, asked: Sequence[Word]) -> list[Summary]:
    """All of them, or none where one is unknown."""
    there = {each.name: each for each in await platform.all(project)}
    refuse_all(unknown_workload(project, each.name, sorted(there)) for each in asked if each.name not in there)
    for each in asked:
        each.must_be(there[each.name].kind)
    return [there[name] for name in dict.fromkeys(each.name for each in asked)]


def _shown(summary: Summary) -> str:
    address = f", and nothing will answer at {summary.address}" if summary.address else ""
    return f"{plain(summary.kind)} {summary.label}: {summary.ready} of {summary.wanted} {summary.goal.lower()}{address}"

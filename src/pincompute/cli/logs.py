"""`pin logs`: what a workload prints, and has printed."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import click

from pincompute.api.logs import LINES, Mark, Wanted
from pincompute.base.clock import SystemClock
from pincompute.cli.offered import workload_names
from pincompute.cli.span import seconds
from pincompute.cli.target import Target, connect, to_platform
from pincompute.cli.told import Told

_MOST = 100_000


def _ago(_: click.Context, __: click.Parameter, value: str) -> int:
    """10m as nanoseconds since 1970."""
    if not value:
        return 0
    return int((SystemClock().now().timestamp() - seconds(value)) * 1e9)


@click.command()
@click.argument("workload", metavar="NAME[/COPY]", shell_complete=workload_names)
@click.option("--follow", "-f", is_flag=True, help="Go on as it prints more, over restarts too.")
@click.option("--tail", type=click.IntRange(0, _MOST), default=LINES, help="Lines of each copy.", show_default=True)
@click.option("--since", metavar="SPAN", default="", callback=_ago, help="Only lines of this time, such as 10m.")
@click.option("--previous", is_flag=True, help="Of the life before the present one.")
@click.option("--gone", is_flag=True, help="Of copies too whose pods are gone, while others are there.")
@click.option("--container", "-c", metavar="NAME", default="", help="Of another container, or a file of its logs.")
@to_platform
def logs(target: Target, workload: str, **words: Any) -> None:
    """Show what a workload prints.

    All copies at once, with restarts marked, also after its pods are gone; NAME/COPY for one copy or task, such as
    resize/12.
    """
    name, _, copy = workload.partition("/")
    try:
        asyncio.run(_logs(target, name, Wanted(copy=copy, **words)))
    except KeyboardInterrupt:
        # The customary way to end --follow.
        return


async def _logs(target: Target, name: str, wanted: Wanted) -> None:
    told = Told(name)
    async with (
        connect(target) as platform,
        aclosing(platform.logs(target.project, name, wanted)) as lines,
    ):
        async for said in lines:
            about_all = isinstance(said, Mark) and not said.copy
            for line in told.lines(said):
                click.echo(line, err=about_all)

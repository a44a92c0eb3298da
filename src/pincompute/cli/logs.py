"""`pin logs`: what a workload prints."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import click

from pincompute.cli.target import Target, connect, to_platform


@click.command()
@click.argument("workload")
@click.option("--follow", "-f", is_flag=True, help="Go on as it prints more.")
@click.option("--tail", type=click.IntRange(0), default=100, help="Lines to begin with.", show_default=True)
@to_platform
def logs(target: Target, workload: str, follow: bool, tail: int) -> None:
    """Show what a workload prints."""
    try:
        asyncio.run(_logs(target, workload, tail=tail, follow=follow))
    except KeyboardInterrupt:
        # The customary way to end --follow.
        return


async def _logs(target: Target, workload: str, *, tail: int, follow: bool) -> None:
    async with (
        connect(target) as platform,
        aclosing(platform.logs(target.project, workload, tail=tail, follow=follow)) as lines,
    ):
        async for line in lines:
            click.echo(line)

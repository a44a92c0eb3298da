"""`pin cancel`: ends a batch or a training job for good."""

from __future__ import annotations

import asyncio

import click

from pincompute.api.change import Cancel
from pincompute.base.clock import SystemClock
from pincompute.base.printable import printable
from pincompute.cli.change import follow_options, local_user, submit_change
from pincompute.cli.completions import complete_workload_names
from pincompute.cli.follow import FollowTimer, follow_to_goal
from pincompute.cli.target import Target, connect, platform_options


@click.command()
@click.argument("workload", shell_complete=complete_workload_names)
@click.option("--because", default="", help="Reason, shown in the workload's status.")
@follow_options
@platform_options
def cancel(target: Target, workload: str, because: str, timeout_s: float | None) -> None:
    """End a batch or a training job for good. What has finished keeps its results."""
    asyncio.run(_cancel(target, workload, Cancel(by=local_user(), because=because), timeout_s))


async def _cancel(target: Target, ref: str, change: Cancel, timeout_s: float | None) -> None:
    timer = FollowTimer.start(SystemClock(), timeout_s or 0.0)
    async with connect(target.within(timeout_s)) as platform:
        result = await submit_change(platform, target.project, ref, change)
        if not result.written or timeout_s is None:
            return
        summary = await follow_to_goal(platform, result.summary, timer, until_finished=True)
        click.echo(printable(f"{summary.label}  {summary.message}"))

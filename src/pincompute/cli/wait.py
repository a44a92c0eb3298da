"""`pin wait`: until a workload is ready, done or gone; at once told when it never will be."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import click

from pincompute.api.status import READY, SUCCEEDED
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import NOT_FOR_KIND, NOT_IN_TIME, WORKLOAD_UNKNOWN
from pincompute.cli.follow import Timer, follow
from pincompute.cli.offered import workload_names
from pincompute.cli.port import Port
from pincompute.cli.target import Target, connect, to_platform
from pincompute.cli.word import plain, word

GOALS = {"ready": READY, "succeeded": SUCCEEDED}
GONE = "gone"


@click.command()
@click.argument("workload", shell_complete=workload_names)
@click.option("--for", "goal", type=click.Choice([*GOALS, GONE]), help="What is waited for; its own goal by default.")
@click.option("--timeout", default=120.0, help="Seconds to wait at most.", show_default=True)
@to_platform
def wait(target: Target, workload: str, goal: str | None, timeout: float) -> None:
    """Wait until a workload is ready, done or gone.

    Ends at once, with the last lines that it printed, when that can never be.
    """
    asyncio.run(_wait(target, workload, goal, Timer.start(SystemClock(), timeout)))


async def _wait(target: Target, said: str, goal: str | None, timer: Timer) -> None:
    asked = word(said)
    async with connect(target) as platform:
        if goal == GONE:
            await _until_gone(platform, target.project, asked.name, timer.patience)
            click.echo(f"{asked.name} is gone")
            return
        async with aclosing(platform.follow(target.project, asked.name)) as summaries:
            now = await anext(summaries)
        asked.must_be(now.kind)
        if goal and GOALS[goal] != now.goal:
            what = f"a {plain(now.kind)} is never {goal}"
            next_ = f"pin wait {now.name} --for {now.goal.lower()}"
            raise Refused(Problem(NOT_FOR_KIND, what, Where(object=f"{target.project}/{now.name}"), next=next_))
        reached = await follow(platform, now, timer)
        click.echo(f"{reached.label}  {reached.message}")


async def _until_gone(platform: Port, project: str, name: str, patience: float) -> None:
    try:
        async with asyncio.timeout(patience), aclosing(platform.follow(project, name)) as summaries:
            async for _ in summaries:
                pass
    except TimeoutError:
        what = f"it is still there after {patience:.0f} s"
        raise Refused(
            Problem(NOT_IN_TIME, what, Where(object=f"{project}/{name}"), next=f"pin delete {name}")
        ) from None
    except Refused as refused:
        if refused.problems[0].reason is not WORKLOAD_UNKNOWN:
            raise

"""`pin wait`: waits until a workload is ready, done or deleted, and fails as soon as that cannot happen."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import click

from pincompute.api.status import READY, SUCCEEDED
from pincompute.base.clock import SystemClock
from pincompute.base.printable import printable
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import NOT_FOR_KIND, TIMED_OUT, WORKLOAD_UNKNOWN
from pincompute.cli.completions import complete_workload_names
from pincompute.cli.follow import FollowTimer, follow_to_goal
from pincompute.cli.platform_client import PlatformClient
from pincompute.cli.target import Target, connect, platform_options
from pincompute.cli.workload_ref import parse_workload_ref, short_kind

GOALS = {"ready": READY, "succeeded": SUCCEEDED}
GONE = "gone"


@click.command()
@click.argument("workload", shell_complete=complete_workload_names)
@click.option("--for", "goal", type=click.Choice([*GOALS, GONE]), help="State to wait for; by default the kind's goal.")
@click.option("--timeout", default=120.0, help="Maximum time to wait, in seconds.", show_default=True)
@platform_options
def wait(target: Target, workload: str, goal: str | None, timeout: float) -> None:
    """Wait until a workload is ready, done or deleted.

    Fails at once, with the last log lines, if the state cannot be reached.
    """
    asyncio.run(_wait_for_goal(target, workload, goal, FollowTimer.start(SystemClock(), timeout)))


async def _wait_for_goal(target: Target, text: str, goal: str | None, timer: FollowTimer) -> None:
    ref = parse_workload_ref(text)
    async with connect(target) as platform:
        if goal == GONE:
            await _wait_until_deleted(platform, target.project, ref.name, timer)
            click.echo(f"{ref.name} is deleted")
            return
        async with aclosing(platform.follow(target.project, ref.name)) as summaries:
            current = await anext(summaries)
        ref.require_kind(current.kind)
        if goal and GOALS[goal] != current.goal:
            what = f"a {short_kind(current.kind)} never becomes {goal}"
            next_ = f"pin wait {current.name} --for {current.goal.lower()}"
            raise Refused(Problem(NOT_FOR_KIND, what, Where(object=f"{target.project}/{current.name}"), next=next_))
        reached = await follow_to_goal(platform, current, timer)
        click.echo(printable(f"{reached.label}  {reached.message}"))


async def _wait_until_deleted(platform: PlatformClient, project: str, name: str, timer: FollowTimer) -> None:
    try:
        async with asyncio.timeout(timer.remaining_s), aclosing(platform.follow(project, name)) as summaries:
            async for _ in summaries:
                pass
    except TimeoutError:
        what = f"not deleted after {timer.timeout_s:.0f} s"
        raise Refused(Problem(TIMED_OUT, what, Where(object=f"{project}/{name}"), next=f"pin delete {name}")) from None
    except Refused as refused:
        if refused.problems[0].reason is not WORKLOAD_UNKNOWN:
            raise

"""Shared by all commands that change a workload: submit the change, print it, and follow it as a deploy is."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

from pincompute.api.change import Change, Scale
from pincompute.api.status import SUCCEEDED
from pincompute.api.workload_detail import ChangeResult
from pincompute.base.clock import SystemClock
from pincompute.base.printable import printable
from pincompute.cli.follow import FollowTimer, follow_to_goal
from pincompute.cli.platform_client import PlatformClient
from pincompute.cli.target import Target, connect
from pincompute.cli.workload_ref import parse_workload_ref, verify_kind

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def follow_options(command: CommandT) -> CommandT:
    """Add --timeout and --no-wait; the command gets both as `timeout_s`, which is None for --no-wait."""

    @wraps(command)
    def with_timeout(timeout: float, *, no_wait: bool, **others: Any) -> Any:
        return command(timeout_s=None if no_wait else timeout, **others)

    timeout = click.option(
        "--timeout", default=120.0, help="Maximum time to wait for the result, in seconds.", show_default=True
    )
    no_wait = click.option("--no-wait", is_flag=True, help="Submit the change and do not wait for the result.")
    return no_wait(timeout(with_timeout))  # type: ignore[return-value]


def local_user() -> str:
    """Return the user's name on this machine; empty for an account without one, as in containers."""
    try:
        return getpass.getuser()[:64]
    except (KeyError, OSError):
        return ""


def change_and_follow(target: Target, ref: str, change: Change, timeout_s: float | None) -> None:
    asyncio.run(_change_and_follow(target, ref, change, timeout_s))


async def _change_and_follow(target: Target, ref: str, change: Change, timeout_s: float | None) -> None:
    timer = FollowTimer.start(SystemClock(), timeout_s or 0.0)
    async with connect(target.within(timeout_s)) as platform:
        result = await submit_change(platform, target.project, ref, change)
        if not result.written or timeout_s is None:
            return
        if result.summary.goal == SUCCEEDED and isinstance(change, Scale):
            # Its goal is reached by the work, and the change says only how much of it runs at once.
            click.echo(f"next: pin get {result.summary.name}", err=True)
            return
        summary = await follow_to_goal(platform, result.summary, timer)
        click.echo(printable(f"{summary.label}  {summary.message}"))


async def submit_change(platform: PlatformClient, project: str, ref: str, change: Change) -> ChangeResult:
    """Submit a change and print its result as soon as it is written, before it is followed."""
    workload = parse_workload_ref(ref)
    await verify_kind(platform, project, workload)
    result = await platform.change(project, workload.name, change)
    first, *details = result.messages
    click.echo(f"{result.summary.label}  {first}")
    for detail in details:
        click.echo(f"  {detail}")
    return result

"""`pin deploy` of a project: its document goes to the project itself, and the project is followed until it is ready."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import click

from pincompute.api.documents import read_document
from pincompute.api.project import Project
from pincompute.api.resource_state import UNCHANGED, ResourceState
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import PROJECT_UNKNOWN, TIMED_OUT
from pincompute.cli.follow import FollowTimer
from pincompute.cli.platform_client import PlatformClient
from pincompute.cli.printable import printable
from pincompute.cli.target import Target, connect


def project_name(text: str) -> str:
    """The name of the project that a document is of; empty for documents of other kinds, and invalid ones."""
    try:
        content = read_document(text).content
    except Refused:
        # Reported by the code that submits the file.
        return ""
    return name_of_project(content)


def name_of_project(content: dict[str, Any]) -> str:
    metadata = content.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if content.get("kind") == Project.__name__ and isinstance(name, str) else ""


def deploy_project(target: Target, name: str, text: str, file: str, timeout_s: float | None) -> None:
    asyncio.run(_deploy(target, name, text, file, timeout_s))


async def _deploy(target: Target, name: str, text: str, file: str, timeout_s: float | None) -> None:
    timer = FollowTimer.start(SystemClock(), timeout_s or 0.0)
    async with connect(target.within(timeout_s)) as platform:
        await report_and_follow(platform, await platform.deploy_project(name, text, file), timer, timeout_s)


async def report_and_follow(
    platform: PlatformClient, state: ResourceState, timer: FollowTimer, timeout_s: float | None
) -> None:
    """Print what was done, and wait until the operator has made it so; None: do not wait."""
    name = state.name
    done = f"project {name}  {state.action}"
    if timeout_s is None:
        click.echo(f"{done}        next: pin project {name}")
        return
    ready = state if state.action == UNCHANGED and state.ready else await _follow_until_ready(platform, name, timer)
    click.echo(printable(f"{done}, {ready.message}        next: pin project {name}"))


async def _follow_until_ready(platform: PlatformClient, name: str, timer: FollowTimer) -> ResourceState:
    latest = ResourceState(kind=Project.__name__, name=name)
    where = Where(object=f"project {name}")
    try:
        async with asyncio.timeout(timer.remaining_s), aclosing(platform.follow_project(name)) as states:
            async for latest in states:
                if latest.ready:
                    return latest
    except TimeoutError:
        what = f"not ready after {timer.timeout_s:.0f} s: {latest.message or 'not reconciled by the operator yet'}"
        raise Refused(Problem(TIMED_OUT, what, where, next=latest.next or f"pin project {name}")) from None
    raise Refused(Problem(PROJECT_UNKNOWN, f"project {name} was deleted while it was followed", where))

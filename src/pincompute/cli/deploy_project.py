"""`pin deploy` of a project, which is followed until it is ready, and of runtimes and their parts."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any, NamedTuple

import click

from pincompute.api.documents import read_document
from pincompute.api.project import Project
from pincompute.api.resource_state import UNCHANGED, ResourceState
from pincompute.base.clock import SystemClock
from pincompute.base.printable import printable
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import PROJECT_UNKNOWN, TIMED_OUT
from pincompute.cli.follow import FollowTimer
from pincompute.cli.platform_client import PlatformClient
from pincompute.cli.target import Target, connect

_RUNTIME, _PART = "Runtime", "PinterestSidecar"
OTHER_KINDS = (Project.__name__, _RUNTIME, _PART)
"""Kinds that are no workloads: their documents are deployed one by one, and not into a project."""


class DocumentOwner(NamedTuple):
    """What a document is of, if that is no workload; empty otherwise, and for invalid documents."""

    kind: str = ""
    name: str = ""


def document_owner(text: str) -> DocumentOwner:
    try:
        content = read_document(text).content
    except Refused:
        # Reported by the code that submits the file.
        return DocumentOwner()
    return owner_of_content(content)


def owner_of_content(content: dict[str, Any]) -> DocumentOwner:
    metadata, kind = content.get("metadata"), content.get("kind")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return DocumentOwner(kind, name) if kind in OTHER_KINDS and isinstance(name, str) else DocumentOwner()


def deploy_document(target: Target, owner: DocumentOwner, text: str, file: str, timeout_s: float | None) -> None:
    """Deploy a project, runtime or runtime part."""
    if owner.kind == Project.__name__:
        deploy_project(target, owner.name, text, file, timeout_s)
    else:
        asyncio.run(_deploy_infrastructure(target, owner, text, file))


async def _deploy_infrastructure(target: Target, owner: DocumentOwner, text: str, file: str) -> None:
    """A version of the platform's runtime changes no workload by itself, so that nothing is followed."""
    kind, name = owner
    async with connect(target) as platform:
        state = await platform.deploy_infrastructure(kind, name, text, file)
    if kind == _RUNTIME:
        click.echo(printable(f"runtime {name}  {state.action}        next: pin runtime plan {name}"))
    else:
        click.echo(printable(f"part {name}  {state.action}        next: name it in the parts of a new Runtime"))


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

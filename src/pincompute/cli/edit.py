"""`pin edit`: opens a workload's document in an editor, and deploys the result."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from pincompute.api.workload import Workload
from pincompute.base.clock import SystemClock
from pincompute.base.printable import printable
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import CONFLICT, USAGE
from pincompute.cli.change import follow_options
from pincompute.cli.completions import complete_workload_names
from pincompute.cli.follow import FollowTimer, follow_to_goal
from pincompute.cli.platform_client import PlatformClient
from pincompute.cli.target import Target, connect, platform_options
from pincompute.cli.workload_ref import WorkloadRef, fetch_workload, parse_workload_ref
from pincompute.cli.yaml_writer import format_document
from pincompute.planning.workload_document import workload_document


@click.command()
@click.argument("workload", shell_complete=complete_workload_names)
@follow_options
@platform_options
def edit(target: Target, workload: str, timeout_s: float | None) -> None:
    """Edit a workload's document in your editor, and deploy it.

    The editor is that of VISUAL or EDITOR. If the result is refused, it is kept in a file.
    """
    ref = parse_workload_ref(workload)
    before = asyncio.run(_fetch(target, ref))
    text = format_document(workload_document(before))
    edited = _open_editor(text)
    if edited is None or edited == text:
        click.echo(f"{ref.name}  unchanged", err=True)
        return
    try:
        asyncio.run(_deploy(target, before, edited, timeout_s))
    except Refused as refused:
        file = Path(f"{ref.name}.edited.yaml")
        file.write_text(edited)
        click.echo(f"your edit is kept in {file}: correct it, and then pin deploy {file}", err=True)
        raise refused from None


def _open_editor(text: str) -> str | None:
    try:
        return click.edit(text, extension=".yaml")
    except click.ClickException as error:
        raise Refused(Problem(USAGE, error.message, next="set EDITOR to your editor, such as EDITOR=vi")) from error


async def _fetch(target: Target, ref: WorkloadRef) -> Workload:
    async with connect(target) as platform:
        return await fetch_workload(platform, target.project, ref)


async def _deploy(target: Target, before: Workload, text: str, timeout_s: float | None) -> None:
    timer = FollowTimer.start(SystemClock(), timeout_s or 0.0)
    async with connect(target.within(timeout_s)) as platform:
        await _require_unchanged(platform, before)
        submitted = await platform.submit(text, "", target.project)
        if timeout_s is None:
            click.echo(f"{submitted.label}  submitted        next: pin get {submitted.name}")
            return
        reached = await follow_to_goal(platform, submitted, timer)
    click.echo(printable(f"{reached.label}  {reached.message}"))


async def _require_unchanged(platform: PlatformClient, before: Workload) -> None:
    """Refuse an edit of a document that was changed since it was opened."""
    metadata = before.metadata
    now = await platform.get_workload(metadata.namespace, metadata.name)
    if (now.metadata.uid, now.metadata.generation) != (metadata.uid, metadata.generation):
        what = f"{metadata.name} was changed while it was edited"
        raise Refused(Problem(CONFLICT, what, Where(object=metadata.key), next=f"pin edit {metadata.name}"))

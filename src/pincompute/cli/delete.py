"""`pin delete`: deletes workloads and their Kubernetes objects."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

import click

from pincompute.api.workload_summary import WorkloadSummary, unknown_workload_problem
from pincompute.base.problem import refuse_all
from pincompute.cli.completions import complete_workload_names
from pincompute.cli.platform_client import PlatformClient
from pincompute.cli.target import Target, connect, platform_options
from pincompute.cli.workload_ref import WorkloadRef, parse_workload_ref, short_kind


@click.command()
@click.argument("workloads", nargs=-1, required=True, shell_complete=complete_workload_names)
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@platform_options
def delete(target: Target, workloads: tuple[str, ...], *, yes: bool) -> None:
    """Delete workloads and their Kubernetes objects.

    On a terminal it lists them and asks for confirmation.
    """
    refs = [parse_workload_ref(each) for each in workloads]
    asyncio.run(_delete_workloads(target, refs, confirm=not yes and sys.stdin.isatty()))


async def _delete_workloads(target: Target, refs: Sequence[WorkloadRef], *, confirm: bool) -> None:
    async with connect(target) as platform:
        workloads = await _require_all(platform, target.project, refs)
        if confirm:
            for workload in workloads:
                click.echo(_format_deletion(workload), err=True)
            question = "Delete it?" if len(workloads) == 1 else f"Delete all {len(workloads)}?"
            click.confirm(question, abort=True, err=True)
        for workload in workloads:
            await platform.delete(target.project, workload.name, workload.uid)
            click.echo(f"{workload.name} deleted")


async def _require_all(platform: PlatformClient, project: str, refs: Sequence[WorkloadRef]) -> list[WorkloadSummary]:
    """Return the summaries of all refs; refuse where one is unknown, so that none is deleted."""
    by_name = {each.name: each for each in await platform.list_summaries(project)}
    unknown = [each.name for each in refs if each.name not in by_name]
    if unknown and len(unknown) < len(refs):
        click.echo("nothing is deleted, as not all of these workloads exist:", err=True)
    refuse_all(unknown_workload_problem(project, name, sorted(by_name)) for name in unknown)
    for ref in refs:
        ref.require_kind(by_name[ref.name].kind)
    return [by_name[name] for name in dict.fromkeys(each.name for each in refs)]


def _format_deletion(summary: WorkloadSummary) -> str:
    counts = f"{summary.ready_text} {summary.goal.lower()}"
    address = f"; {summary.address} stops answering" if summary.address else ""
    return f"{short_kind(summary.kind)} {summary.label}: {counts}{address}"

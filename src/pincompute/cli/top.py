"""`pin top`: CPU and memory of workloads, or of the replicas of one, against their requests and limits."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

import click
import msgspec

from pincompute.api.usage import ResourceUsage, WorkloadUsage
from pincompute.base.printable import printable
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import USAGE
from pincompute.cli.completions import complete_workload_names
from pincompute.cli.output import as_format
from pincompute.cli.platform_client import PlatformClient
from pincompute.cli.table import format_table
from pincompute.cli.target import Target, connect, platform_options
from pincompute.cli.usage import echo_unknown_usage, format_cpu, format_memory, used_cell
from pincompute.cli.watch import Screen
from pincompute.cli.workload_ref import WorkloadRef, parse_workload_ref

WATCH_INTERVAL_S = 10.0
"""Kubelets measure every ten seconds."""
_HEADER = ("NAME", "CPU", "REQ", "LIMIT", "MEMORY", "REQ", "LIMIT", "RESTARTS")


class ListedUsage(WorkloadUsage, frozen=True, omit_defaults=False):
    """Use of one workload, or of one replica, with its project."""

    project: str = ""


@click.command()
@click.argument("workload", required=False, shell_complete=complete_workload_names)
@click.option("--all-projects", "-A", "everywhere", is_flag=True, help="Workloads of all projects that you may view.")
@click.option("--sort-by", type=click.Choice(["cpu", "memory"]), default="cpu", show_default=True, help="Order.")
@click.option("--output", "-o", type=click.Choice(["json", "yaml"]), help="Output format for programs.")
@click.option("--watch", "-w", is_flag=True, help="Keep running, and measure again every ten seconds.")
@platform_options
def top(  # noqa: PLR0913  (options, by name)
    target: Target, workload: str | None, sort_by: str, output: str | None, *, everywhere: bool, watch: bool
) -> None:
    """Show use of CPU and memory, highest first.

    Sums the running replicas of each workload; with a name, one line for each replica. REQ and LIMIT are the requests
    and limits of the measured replicas; - is none. Sidecars of the runtime are not counted.
    """
    if everywhere and workload:
        what = "--all-projects lists whole projects: it cannot be combined with a name"
        raise Refused(Problem(USAGE, what, next=f"pin top {workload}, or pin top --all-projects"))
    if watch and output == "yaml":
        what = "--watch cannot print yaml"
        raise Refused(Problem(USAGE, what, next="pin top --watch, or with --output json for one measurement a line"))
    ref = parse_workload_ref(workload) if workload else None
    if watch:
        asyncio.run(_watch(target, ref, sort_by, output or "", everywhere=everywhere))
        return
    usages = asyncio.run(_measure_once(target, ref, sort_by, everywhere=everywhere))
    if output:
        click.echo(as_format(output, usages), nl=False)
        return
    click.echo(_format_or_hint(usages, target, ref, everywhere=everywhere), nl=False)
    echo_unknown_usage(usages, "pin top -o json")


async def _measure_once(
    target: Target, ref: WorkloadRef | None, sort_by: str, *, everywhere: bool
) -> list[ListedUsage]:
    async with connect(target) as platform:
        return await _measure(platform, target.project, ref, sort_by, everywhere=everywhere)


async def _measure(
    platform: PlatformClient, project: str, ref: WorkloadRef | None, sort_by: str, *, everywhere: bool
) -> list[ListedUsage]:
    projects = sorted(each.project for each in await platform.list_projects()) if everywhere else [project]
    usages = [
        ListedUsage(**msgspec.structs.asdict(each), project=name)
        for name in projects
        for each in await (_replica_usages(platform, name, ref) if ref else platform.list_usage(name))
        if each.running
    ]
    return sorted(usages, key=lambda each: _sort_key(each, sort_by))


async def _replica_usages(platform: PlatformClient, project: str, ref: WorkloadRef) -> list[WorkloadUsage]:
    detail = await platform.describe(project, ref.name)
    ref.require_kind(detail.summary.kind)
    return [each.usage for each in detail.replicas if each.usage]


def _sort_key(usage: ListedUsage, sort_by: str) -> tuple[int, int, str, str]:
    """Highest use first; unknown use last, as nothing can be said of its order."""
    resources = (usage.cpu, usage.memory) if sort_by == "cpu" else (usage.memory, usage.cpu)
    first, second = (-1 if each.used is None else each.used for each in resources)
    return -first, -second, usage.project, usage.name


async def _watch(target: Target, ref: WorkloadRef | None, sort_by: str, output: str, *, everywhere: bool) -> None:
    """Print measurements until cancelled: redrawn on a terminal, one after the other in a pipe."""
    screen = Screen() if sys.stdout.isatty() and not output else None
    async with connect(target) as platform:
        while True:
            usages = await _measure(platform, target.project, ref, sort_by, everywhere=everywhere)
            text = usage_table(usages, with_project=everywhere)
            if output:
                click.echo(msgspec.json.encode(usages))
            elif screen:
                screen.redraw(text)
            else:
                click.echo(text)
            await asyncio.sleep(WATCH_INTERVAL_S)


def _format_or_hint(usages: Sequence[ListedUsage], target: Target, ref: WorkloadRef | None, *, everywhere: bool) -> str:
    if usages:
        return usage_table(usages, with_project=everywhere) + "\n"
    place = "every project that you may view" if everywhere else f"project {target.project}"
    hint = f"{ref.name} has no running replicas        next: pin why {ref.name}" if ref else ""
    click.echo(hint or f"{place} has no running workloads        next: pin get", err=True)
    return ""


def usage_table(usages: Sequence[ListedUsage], *, with_project: bool = False) -> str:
    """Fits 80 columns with names of up to 22 characters."""
    rows = [_HEADER, *map(_usage_row, usages)]
    if with_project:
        projects = ("PROJECT", *(each.project for each in usages))
        rows = [(project, *row) for project, row in zip(projects, rows, strict=True)]
    return printable(format_table(rows, text_columns=2 if with_project else 1))


def _usage_row(usage: WorkloadUsage) -> tuple[str, ...]:
    cpu = (used_cell(usage.cpu, format_cpu), *_bound_cells(usage.cpu, is_cpu=True))
    memory = (used_cell(usage.memory, format_memory), *_bound_cells(usage.memory, is_cpu=False))
    return (usage.name, *cpu, *memory, str(usage.restarts))


def _bound_cells(resource: ResourceUsage, *, is_cpu: bool) -> tuple[str, str]:
    render = format_cpu if is_cpu else format_memory
    requested = render(resource.requested) if resource.requested else "-"
    return requested, "-" if resource.limit is None else render(resource.limit)

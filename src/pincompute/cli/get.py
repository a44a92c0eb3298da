"""`pin get`: lists the workloads of a project, or shows one briefly."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import click

from pincompute.api.workload_summary import WorkloadSummary
from pincompute.base.clock import SystemClock
from pincompute.base.printable import printable
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import USAGE
from pincompute.cli.completions import complete_kinds, complete_workload_names
from pincompute.cli.durations import parse_time_span
from pincompute.cli.list_filter import ListFilter, expiry_table, workload_table
from pincompute.cli.output import as_json, as_yaml
from pincompute.cli.platform_client import PlatformClient
from pincompute.cli.target import Target, connect, platform_options
from pincompute.cli.workload_ref import (
    WorkloadRef,
    fetch_workload,
    find_kind,
    parse_kind,
    parse_workload_ref,
    short_kind,
)
from pincompute.objects.times import format_time


@click.command()
@click.argument("names", nargs=-1, shell_complete=complete_workload_names)
@click.option(
    "--kind",
    "-k",
    default="",
    shell_complete=complete_kinds,
    help="Only workloads of this kind, such as service or jobset.",
)
@click.option("--wrong", is_flag=True, help="Only workloads with a problem.")
@click.option(
    "--expiring",
    is_flag=False,
    flag_value="7d",
    default="",
    metavar="SPAN",
    help="Only workloads that expire within a time span, with the time; 7d by default.",
)
@click.option("--unowned", is_flag=True, help="Workloads without an owner, and objects without a workload.")
@click.option("--all-projects", "-A", "everywhere", is_flag=True, help="Workloads of all projects that you may view.")
@click.option("--output", "-o", type=click.Choice(["json", "yaml", "name", "wide"]), help="Output format.")
@click.option("--watch", "-w", is_flag=True, help="Keep running and show changes.")
@platform_options
def get(  # noqa: PLR0913  (options, by name)
    target: Target,
    names: tuple[str, ...],
    kind: str,
    expiring: str,
    output: str | None,
    *,
    wrong: bool,
    unowned: bool,
    everywhere: bool,
    watch: bool,
) -> None:
    """List workloads, or show one briefly.

    `pin get services` lists one kind, as --kind service does. With names, json and yaml have the groups of failed tasks
    and the attempts of batches, too.
    """
    if unowned:
        # Loaded only where it is needed.
        from pincompute.cli.unowned import show_unowned

        if names or kind or expiring or wrong or watch or everywhere:
            what = "--unowned lists a whole project: it cannot be combined with names and other filters"
            raise Refused(Problem(USAGE, what, next="pin get --unowned"))
        asyncio.run(show_unowned(target, output or ""))
        return
    if len(names) == 1 and not kind and names[0].endswith("s") and find_kind(names[0]):
        # A workload of such a name is still found with its kind: service/jobs.
        names, kind = (), names[0]
    refs = tuple(parse_workload_ref(each) for each in names)
    now = SystemClock().now()
    until = format_time(now + timedelta(seconds=parse_time_span(expiring))) if expiring else ""
    list_filter = ListFilter(refs, parse_kind(kind) if kind else "", wrong, output or "", until)
    if everywhere and (names or watch):
        what = "--all-projects lists whole projects: it cannot be combined with names and --watch"
        raise Refused(Problem(USAGE, what, next="pin get --all-projects --kind service, or --wrong"))
    if watch:
        _watch(target, list_filter)
        return
    if list_filter.is_single and not expiring:
        click.echo(asyncio.run(_fetch_one(target, list_filter.refs[0])), nl=False)
        return
    workloads = asyncio.run(_fetch_summaries(target, everywhere=everywhere, measured=list_filter.is_measured))
    list_filter.require_existing(target.project, {each.name: each for each in workloads})
    matching = [each for each in workloads if list_filter.matches(each)]
    if expiring and matching and output in (None, "wide"):
        click.echo(expiry_table(matching, now, with_project=everywhere))
        return
    if names and output in ("json", "yaml"):
        matching = asyncio.run(_add_batch_results(target, matching))
    place = "every project that you may view" if everywhere else f"project {target.project}"
    filtered = bool(kind or wrong or expiring)
    click.echo(_format_list(matching, output, place, filtered=filtered, with_project=everywhere), nl=False)


def _watch(target: Target, list_filter: ListFilter) -> None:
    # Loaded only where it is needed.
    from pincompute.cli.watch import WATCH_FORMATS, watch_workloads

    if list_filter.output not in WATCH_FORMATS:
        what = f"--watch cannot print {list_filter.output}"
        raise Refused(Problem(USAGE, what, next="pin get --watch, or with --output json for one workload a line"))
    asyncio.run(watch_workloads(target, list_filter))


async def _fetch_one(target: Target, ref: WorkloadRef) -> str:
    # Loads every kind, which a list does not need.
    from pincompute.cli.workload_summary import format_workload

    async with connect(target) as platform:
        workload = await fetch_workload(platform, target.project, ref)
    return printable(format_workload(workload, SystemClock().now()))


async def _fetch_summaries(target: Target, *, everywhere: bool, measured: bool) -> list[WorkloadSummary]:
    async with connect(target) as platform:
        projects = [target.project]
        if everywhere:
            projects = sorted(each.project for each in await platform.list_projects())
        lists = [await _fetch_project(platform, project, measured=measured) for project in projects]
        if platform.list_note:
            click.echo(platform.list_note, err=True)
    return [each for listed in lists for each in sorted(listed, key=lambda each: each.name)]


async def _fetch_project(platform: PlatformClient, project: str, *, measured: bool) -> Sequence[WorkloadSummary]:
    if not measured:
        return await platform.list_summaries(project)
    # Loaded only where it is needed.
    from pincompute.cli.usage import fetch_measured

    return await fetch_measured(platform, project)


async def _add_batch_results(target: Target, summaries: Sequence[WorkloadSummary]) -> list[WorkloadSummary]:
    # Loads every kind, which a list does not need.
    from pincompute.cli.batch_results import add_batch_results

    async with connect(target) as platform:
        return await add_batch_results(platform, summaries)


def _format_list(
    workloads: list[WorkloadSummary], output: str | None, place: str, *, filtered: bool, with_project: bool
) -> str:
    if output == "json":
        return as_json(workloads)
    if output == "yaml":
        return as_yaml(workloads)
    if output == "name":
        return "".join(f"{short_kind(each.kind)}/{each.name}\n" for each in workloads)
    if not workloads:
        hint = "pin get" if filtered else "pin deploy NAME --image IMAGE --port 8080"
        found = "no matching workloads" if filtered else "no workloads"
        click.echo(f"{place} has {found}        next: {hint}", err=True)
        return ""
    wide = output == "wide"
    if wide:
        # Loaded only where it is needed.
        from pincompute.cli.usage import echo_unknown_usage, usages_of

        echo_unknown_usage(usages_of(workloads), "pin get -o json")
    return workload_table(workloads, wide=wide, with_usage=wide, with_project=with_project) + "\n"

"""`pin history`: what happened to a workload, also to one that was deleted."""

from __future__ import annotations

import asyncio

import click

from pincompute.api.history import MAX_HISTORY_ENTRIES, MAX_HISTORY_NUMBER, HistoryEntry, HistoryPage, HistoryQuery
from pincompute.base.printable import printable
from pincompute.cli.completions import complete_workload_names
from pincompute.cli.output import as_format
from pincompute.cli.page_options import page_options
from pincompute.cli.table import format_table
from pincompute.cli.target import Target, connect, platform_options
from pincompute.cli.workload_ref import parse_workload_ref


@click.command()
@click.argument("workload", required=False, default="", shell_complete=complete_workload_names)
@page_options(MAX_HISTORY_ENTRIES, MAX_HISTORY_NUMBER, 50)
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Output format for programs.")
@platform_options
def history(target: Target, workload: str, limit: int, before: int, output: str | None) -> None:
    """Show what happened to a workload, also to a deleted one.

    Changes with their callers, states and reasons, launches of replicas with their phases, restarts, failures,
    evictions and events of nodes; oldest first. Without a name, of the whole project.
    """
    name = parse_workload_ref(workload).name if workload else ""
    page = asyncio.run(_fetch_page(target, name, HistoryQuery(limit=limit, before=before)))
    if output:
        click.echo(as_format(output, page), nl=False)
    else:
        # A message may quote what a tenant wrote.
        click.echo(printable(format_history_page(page, name)))


async def _fetch_page(target: Target, name: str, query: HistoryQuery) -> HistoryPage:
    async with connect(target) as platform:
        return await platform.history_page(target.project, name, query)


def format_history_page(page: HistoryPage, name: str) -> str:
    if not page.entries:
        return "no entries"
    header = ("AT", *(() if name else ("WORKLOAD",)), "EVENT", "DETAILS")
    rows = [
        (each.at, *(() if name else (each.workload,)), each.event, " ".join(entry_details(each).split()))
        for each in reversed(page.entries)
    ]
    table = format_table([header, *rows], text_columns=len(header))
    older = f"older entries: pin history {name}{' ' if name else ''}--before {page.next}\n" if page.next else ""
    return f"{older}{table}"


def entry_details(entry: HistoryEntry) -> str:
    """The entry in one line, without its time and event."""
    if entry.launch:
        phases = entry.launch
        times = (
            ("scheduled", phases.scheduled_s), ("sandbox", phases.sandbox_s),
            ("started", phases.started_s), ("ready", phases.ready_s),
        )  # fmt: skip
        known = "  ".join(f"{phase} {seconds} s" for phase, seconds in times if seconds is not None)
        return f"{entry.replica} on {entry.node or '-'}: {known}"
    revision = f"@{entry.revision}" if entry.revision else ""
    place = entry.replica or entry.node
    text = ": ".join(filter(None, (entry.reason, entry.message)))
    caller = f"by {entry.caller}" if entry.caller else ""
    return "  ".join(filter(None, (revision, place, text, caller)))

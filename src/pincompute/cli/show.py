"""`pin show`: everything known about a workload."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime

import click
import msgspec

from pincompute.api.kinds import WORKLOADS
from pincompute.api.workload import Workload
from pincompute.api.workload_detail import NativeDetail, ReplicaDetail, RevisionDetail, WorkloadDetail
from pincompute.base.clock import SystemClock
from pincompute.base.printable import printable
from pincompute.cli.completions import complete_workload_names
from pincompute.cli.detail import fetch_detail, format_events
from pincompute.cli.durations import format_age
from pincompute.cli.output import as_format
from pincompute.cli.table import format_table
from pincompute.cli.target import Target, platform_options
from pincompute.cli.usage import UNKNOWN, format_cpu, format_memory, format_usage
from pincompute.cli.workload_summary import format_workload

_MAX_REPLICAS_SHOWN = 20
"""A batch may have thousands of tasks. Those with a problem come first."""
_TERMINAL_WIDTH = 80
"""Wider tables of replicas are shown without what each uses."""
_INDENT = "  "
_HEALTHY_STATES = ("Ready", "Running", "Succeeded")


@click.command()
@click.argument("workload", shell_complete=complete_workload_names)
@click.option("--deleted", is_flag=True, help="The last known state, also of a workload that was deleted.")
@click.option("--output", "-o", type=click.Choice(["json", "yaml"]), help="Output format for programs.")
@platform_options
def show(target: Target, workload: str, output: str | None, *, deleted: bool) -> None:
    """Show everything known about a workload."""
    if deleted:
        # Loaded only where it is needed.
        from pincompute.cli.last_state import show_last_state

        asyncio.run(show_last_state(target, workload, output or ""))
        return
    detail = asyncio.run(fetch_detail(target, workload))
    if output:
        click.echo(as_format(output, detail), nl=False)
    else:
        click.echo(printable(format_detail(detail, SystemClock().now())), nl=False)


def format_detail(detail: WorkloadDetail, now: datetime) -> str:
    workload = msgspec.convert(detail.resource, WORKLOADS[detail.summary.kind])
    sections = (
        ("", _summary_lines(workload, detail, now)),
        ("conditions", _condition_lines(workload, now)),
        (workload.REPLICA_NOUN[1], list(_replica_lines(detail.replicas, now))),
        ("Kubernetes objects", _native_lines(detail.natives, now)),
        ("events", format_events(detail.events, now)),
        ("history", list(_revision_lines(detail.history, now))),
    )
    return "\n".join(_format_section(title, lines) for title, lines in sections if lines)


def _summary_lines(workload: Workload, detail: WorkloadDetail, now: datetime) -> list[str]:
    headline, *lines = format_workload(workload, now).splitlines()
    # Simulated replicas run no program that could use anything.
    usage = format_usage(detail.usage) if detail.usage and not workload.status.simulated else ""
    return [headline, *([f"  {'uses':<11}{usage}"] if usage else []), *lines]


def _format_section(title: str, lines: Sequence[str]) -> str:
    if not title:
        return "".join(f"{line}\n" for line in lines)
    return "".join(f"{line}\n" for line in (title, *(f"{_INDENT}{line}" for line in lines)))


def _condition_lines(workload: Workload, now: datetime) -> list[str]:
    rows = [
        (each.type, each.status, each.reason, f"since {format_age(each.last_transition_time, now)}", each.message)
        for each in workload.status.conditions
    ]
    return format_table(rows, text_columns=5).splitlines() if rows else []


def _replica_lines(replicas: Sequence[ReplicaDetail], now: datetime) -> Iterator[str]:
    if not replicas:
        return
    unhealthy_first = sorted(replicas, key=lambda each: (each.state in _HEALTHY_STATES, each.name))
    shown = unhealthy_first[:_MAX_REPLICAS_SHOWN]
    rows = [
        (each.name, each.node or "-", each.state, str(each.restarts), format_age(each.since, now)) for each in shown
    ]
    rows = [("NAME", "NODE", "STATE", "RESTARTS", "AGE"), *rows]
    measured = [row + cells for row, cells in zip(rows, [("CPU", "MEMORY"), *map(_usage_cells, shown)], strict=True)]
    is_measured = any(each.cpu_millicores is not None or each.memory_bytes is not None for each in shown)
    lines = format_table(measured, text_columns=3).splitlines()
    if not is_measured or max(map(len, lines)) > _TERMINAL_WIDTH - len(_INDENT):
        lines = format_table(rows, text_columns=3).splitlines()
    yield from lines
    if len(replicas) > _MAX_REPLICAS_SHOWN:
        yield f"and {len(replicas) - _MAX_REPLICAS_SHOWN} more"


def _usage_cells(replica: ReplicaDetail) -> tuple[str, str]:
    cpu, memory = replica.cpu_millicores, replica.memory_bytes
    return (UNKNOWN if cpu is None else format_cpu(cpu), UNKNOWN if memory is None else format_memory(memory))


def _native_lines(natives: Sequence[NativeDetail], now: datetime) -> list[str]:
    rows = [(each.name, format_age(each.since, now)) for each in natives]
    return format_table(rows, text_columns=1).splitlines() if rows else []


def _revision_lines(history: Sequence[RevisionDetail], now: datetime) -> Iterator[str]:
    """The changes of the first recorded revision are unknown: earlier ones are pruned."""
    for revision in history:
        runtime = f"  runtime {revision.runtime}" if revision.runtime else ""
        default = "first recorded revision" if revision is history[0] else "no change of what runs"
        first, *more = revision.changes or [default]
        yield f"@{revision.number}  {format_age(revision.created_at, now)} ago{runtime}  {first}"
        yield from (f"    {change}" for change in more)

"""Formats what workloads use of CPU and memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import click
import msgspec

from pincompute.api.usage import ResourceUsage, WorkloadUsage
from pincompute.api.workload_summary import WorkloadSummary
from pincompute.base.printable import printable
from pincompute.base.problem import Refused
from pincompute.cli.platform_client import PlatformClient
from pincompute.objects.quantity import format_bytes, format_cores

USAGE_COLUMNS = ("CPU", "MEMORY", "RESTARTS")
UNKNOWN = "unknown"


class MeasuredSummary(WorkloadSummary, frozen=True, omit_defaults=False):
    """A summary with the use of the workload; null if it has no pods."""

    usage: WorkloadUsage | None = None


async def fetch_measured(platform: PlatformClient, project: str) -> list[MeasuredSummary]:
    summaries, usages = await asyncio.gather(platform.list_summaries(project), _fetch_usage(platform, project))
    return [
        MeasuredSummary(
            **msgspec.structs.asdict(each),
            usage=usages.get(each.name) if isinstance(usages, Mapping) else WorkloadUsage(name=each.name, note=usages),
        )
        for each in summaries
    ]


async def _fetch_usage(platform: PlatformClient, project: str) -> dict[str, WorkloadUsage] | str:
    """Use of each workload, or why it cannot be read: the list is shown without it."""
    try:
        return {each.name: each for each in await platform.list_usage(project)}
    except Refused as refused:
        return refused.problems[0].what


def usage_cells(summary: WorkloadSummary) -> tuple[str, ...]:
    usage = summary.usage if isinstance(summary, MeasuredSummary) else None
    if usage is None:
        return ("-", "-", "-")
    if not usage.running:
        return (UNKNOWN, UNKNOWN, UNKNOWN) if usage.note else ("-", "-", str(usage.restarts))
    return (used_cell(usage.cpu, format_cpu), used_cell(usage.memory, format_memory), str(usage.restarts))


def usages_of(summaries: Sequence[WorkloadSummary]) -> list[WorkloadUsage]:
    return [each.usage for each in summaries if isinstance(each, MeasuredSummary) and each.usage]


def echo_unknown_usage(usages: Sequence[WorkloadUsage], command: str) -> None:
    """Tell on stderr why figures are unknown: one line, as most nodes fail for the same reason."""
    noted = [each for each in usages if each.note]
    if not noted:
        return
    more = f"; and of {len(noted) - 1} more: {command}" if len(noted) > 1 else ""
    click.echo(printable(f"use of {noted[0].name} is unknown: {noted[0].note}{more}"), err=True)


def format_usage(usage: WorkloadUsage) -> str:
    """`120m of 500m cpu, 200Mi of 512Mi memory`; empty if nothing runs."""
    if not usage.running:
        return ""
    if usage.cpu.used is None and usage.memory.used is None:
        return f"{UNKNOWN}: {usage.note}"
    cpu, memory = _part(usage.cpu, "cpu", format_cpu), _part(usage.memory, "memory", format_memory)
    unknown = max(usage.cpu.unknown, usage.memory.unknown)
    rest = f"; {unknown} of {usage.running} unknown: {usage.note}" if unknown else ""
    return f"{cpu}, {memory}{rest}"


def used_cell(resource: ResourceUsage, render: Callable[[int], str]) -> str:
    if resource.used is None:
        return UNKNOWN
    return f"{'>=' if resource.unknown else ''}{render(resource.used)}"


def _part(resource: ResourceUsage, name: str, render: Callable[[int], str]) -> str:
    if resource.used is None:
        return f"{UNKNOWN} {name}"
    allotted = f" of {render(resource.allotted)}" if resource.allotted else ""
    return f"{render(resource.used)}{allotted} {name}"


def format_cpu(millicores: int) -> str:
    return f"{millicores}m" if millicores < 1000 else format_cores(Fraction(millicores, 1000))


def format_memory(size_bytes: int) -> str:
    return format_bytes(Fraction(size_bytes))

"""`pin get --watch`: a table that is redrawn on a terminal, or one line for each change in a pipe."""

from __future__ import annotations

import shutil
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import click
import msgspec

from pincompute.api.workload_summary import WorkloadChange, WorkloadSummary
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Refused
from pincompute.base.reasons import WORKLOAD_UNKNOWN
from pincompute.cli.colours import forced_colour
from pincompute.cli.list_filter import ListFilter, workload_table
from pincompute.cli.platform_client import PlatformClient
from pincompute.cli.target import Target, connect
from pincompute.cli.workload_summary import format_workload

WATCH_FORMATS = ("", "wide", "json")
GONE_REASON = "Gone"
"""Shown as the reason of a deleted workload."""
_MIN_COLUMN_WIDTHS = (20, 11, 7, 18)
"""Keep the columns of later lines aligned with the first, whose widths are printed already."""


class Screen:
    """Redraws the last lines of a terminal."""

    def __init__(self, *, err: bool = False) -> None:
        self._drawn_lines = 0
        self._err = err

    def redraw(self, text: str) -> None:
        """Draw over the previous text. Lines are cut to the terminal: a wrapped line could not be drawn over."""
        width, height = shutil.get_terminal_size()
        lines = [_cut(line, width) for line in text.splitlines()][: max(1, height - 1)]
        up = f"\033[{self._drawn_lines}A\033[J" if self._drawn_lines else ""
        drawn = "\n".join(lines)
        click.echo(up + (click.unstyle(drawn) if forced_colour() is False else drawn), color=True, err=self._err)
        self._drawn_lines = len(lines)


def _cut(line: str, width: int) -> str:
    """A line that is cut loses its colours, whose codes could be cut too."""
    plain = click.unstyle(line)
    return line if len(plain) <= width else plain[:width]


class ChangeLines:
    """Prints one line for each change."""

    def __init__(self, output: str) -> None:
        self._output = output
        self._last_lines: dict[str, str] = {}
        self._header_printed = False

    def print_changes(self, changed: Sequence[WorkloadSummary]) -> None:
        """Print changed workloads, except those whose line stays the same. JSON shows every change."""
        if self._output == "json":
            for summary in changed:
                click.echo(msgspec.json.encode(summary))
            return
        table = workload_table(changed, wide=self._output == "wide", min_widths=_MIN_COLUMN_WIDTHS)
        header, *lines = table.splitlines()
        if not self._header_printed:
            click.echo(header)
        self._header_printed = True
        for summary, line in zip(changed, lines, strict=True):
            if line != self._last_lines.get(summary.name):
                click.echo(line)
            self._last_lines[summary.name] = line


async def watch_workloads(target: Target, list_filter: ListFilter) -> None:
    """Show workloads and their changes until cancelled."""
    screen = Screen() if sys.stdout.isatty() and list_filter.output != "json" else None
    lines = ChangeLines(list_filter.output)
    shown: dict[str, WorkloadSummary] = {}
    async with connect(target) as platform, aclosing(platform.watch(target.project)) as changes:
        first = await anext(changes)
        list_filter.require_existing(target.project, {each.name: each for each in first.current})
        async for change in _chain(first, changes):
            changed = _apply_change(list_filter, shown, change)
            if screen is None:
                lines.print_changes(changed)
            elif changed or change is first:
                screen.redraw(await _render_screen(platform, target.project, list_filter, shown))


async def _chain(first: WorkloadChange, others: AsyncGenerator[WorkloadChange]) -> AsyncGenerator[WorkloadChange]:
    yield first
    async for change in others:
        yield change


def _apply_change(
    list_filter: ListFilter, shown: dict[str, WorkloadSummary], change: WorkloadChange
) -> list[WorkloadSummary]:
    """Update the shown workloads, and return the changed and deleted ones.

    A workload that no longer matches the filter disappears silently.
    """
    matching = {each.name: each for each in change.current if list_filter.matches(each)}
    not_matching = {each.name for each in change.current if each.name not in matching}
    deleted = [
        msgspec.structs.replace(shown[name], reason=GONE_REASON, ready=0)
        for name in sorted(change.deleted)
        if name in shown
    ]
    for name in {*change.deleted, *not_matching} & shown.keys():
        del shown[name]
    shown.update(matching)
    return [*matching.values(), *deleted]


async def _render_screen(
    platform: PlatformClient, project: str, list_filter: ListFilter, shown: dict[str, WorkloadSummary]
) -> str:
    if not list_filter.is_single:
        return workload_table([shown[name] for name in sorted(shown)], wide=list_filter.output == "wide")
    name = list_filter.refs[0].name
    try:
        return format_workload(await platform.get_workload(project, name), SystemClock().now())
    except Refused as refused:
        if refused.problems[0].reason is not WORKLOAD_UNKNOWN:
            raise
        return f"{name} is deleted"

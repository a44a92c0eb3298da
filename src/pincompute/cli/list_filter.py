"""Selects workloads of a project by name, kind and state, and formats them as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from pincompute.api.workload_summary import WorkloadSummary, unknown_workload_problem
from pincompute.base.printable import printable
from pincompute.base.problem import refuse_all
from pincompute.cli.colours import colour_reason
from pincompute.cli.durations import elapsed_s, format_duration
from pincompute.cli.table import format_table
from pincompute.cli.workload_ref import WorkloadRef

TABLE_COLUMNS = ("NAME", "KIND", "READY", "REASON", "ADDRESS")


class ListFilter(NamedTuple):
    """Arguments and options of `pin get`."""

    refs: tuple[WorkloadRef, ...]
    kind: str
    failed_only: bool
    output: str
    expires_before: str = ""
    """Only workloads whose life ends before this time, in Kubernetes' format."""

    @property
    def is_single(self) -> bool:
        """Whether one workload is asked for, which is shown in detail and not as a table."""
        return len(self.refs) == 1 and not self.output

    @property
    def is_measured(self) -> bool:
        """Whether the output has what the workloads use, which nodes are asked for."""
        return self.output in ("json", "yaml") or (self.output == "wide" and not self.expires_before)

    def matches(self, summary: WorkloadSummary) -> bool:
        named = not self.refs or summary.name in {each.name for each in self.refs}
        if self.expires_before and not "" < summary.expires < self.expires_before:
            return False
        return named and (not self.kind or summary.kind == self.kind) and (not self.failed_only or summary.failed)

    def require_existing(self, project: str, by_name: Mapping[str, WorkloadSummary]) -> None:
        """Refuse refs to workloads that do not exist, or have another kind."""
        missing = (each for each in self.refs if each.name not in by_name)
        refuse_all(unknown_workload_problem(project, each.name, sorted(by_name)) for each in missing)
        for ref in self.refs:
            ref.require_kind(by_name[ref.name].kind)


def workload_table(
    workloads: Sequence[WorkloadSummary],
    *,
    wide: bool,
    with_usage: bool = False,
    with_project: bool = False,
    min_widths: Sequence[int] = (),
) -> str:
    """`with_usage` needs summaries with their use, and `wide`."""
    header = (*TABLE_COLUMNS, "MESSAGE") if wide else TABLE_COLUMNS
    rows = [header, *(_summary_row(each, wide=wide) for each in workloads)]
    if with_usage:
        rows = _add_usage(rows, workloads)
        header = rows[0]
    if with_project:
        rows = _add_projects(rows, workloads)
        header = rows[0]
    return format_table(rows, text_columns=len(header), min_widths=min_widths)


def expiry_table(workloads: Sequence[WorkloadSummary], now: datetime, *, with_project: bool = False) -> str:
    """The workloads in the order in which they expire."""
    workloads = sorted(workloads, key=lambda each: (each.expires, each.name))
    rows: list[tuple[str, ...]] = [(*TABLE_COLUMNS[:4], "EXPIRES", "IN")]
    rows += [(*_summary_row(each, wide=False)[:4], each.expires, _time_left(each.expires, now)) for each in workloads]
    rows = _add_projects(rows, workloads) if with_project else rows
    return format_table(rows, text_columns=len(rows[0]) - 1)


def _add_projects(rows: Sequence[tuple[str, ...]], workloads: Sequence[WorkloadSummary]) -> list[tuple[str, ...]]:
    projects = ["PROJECT", *(each.project for each in workloads)]
    return [(project, *row) for project, row in zip(projects, rows, strict=True)]


def _add_usage(rows: Sequence[tuple[str, ...]], workloads: Sequence[WorkloadSummary]) -> list[tuple[str, ...]]:
    """Columns of use before the message, which is long."""
    # Loaded only where it is needed.
    from pincompute.cli.usage import USAGE_COLUMNS, usage_cells

    cells = [USAGE_COLUMNS, *map(usage_cells, workloads)]
    return [(*row[:-1], *added, row[-1]) for row, added in zip(rows, cells, strict=True)]


def _time_left(expires: str, now: datetime) -> str:
    left_s = elapsed_s(now.isoformat(), expires)
    return format_duration(left_s) if left_s > 0 else "-"


def _summary_row(summary: WorkloadSummary, *, wide: bool) -> tuple[str, ...]:
    # The prefix is the same for every kind and takes too much width.
    kind = summary.kind.removeprefix("Pinterest")
    row = (summary.label, kind, summary.ready_text, colour_reason(summary.reason), summary.address)
    # A message may quote the last line of a tenant's program.
    return (*row, printable(summary.message)) if wide else row

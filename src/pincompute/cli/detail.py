"""Fetches the details of a workload for the commands that print parts of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pincompute.api.workload_detail import EventDetail, WorkloadDetail
from pincompute.cli.durations import format_age
from pincompute.cli.table import format_table
from pincompute.cli.target import Target, connect
from pincompute.cli.workload_ref import parse_workload_ref


async def fetch_detail(target: Target, text: str) -> WorkloadDetail:
    ref = parse_workload_ref(text)
    async with connect(target) as platform:
        detail = await platform.describe(target.project, ref.name)
    ref.require_kind(detail.summary.kind)
    return detail


def format_events(events: Sequence[EventDetail], now: datetime) -> list[str]:
    rows = [
        (
            f"{format_age(each.last_seen, now)} ago",
            f"x{each.count}" if each.count > 1 else "",
            "!" if each.warning else "",
            each.involved_object,
            f"{each.reason}: {each.note}",
        )
        for each in events
    ]
    return format_table(rows, text_columns=5).splitlines() if rows else []

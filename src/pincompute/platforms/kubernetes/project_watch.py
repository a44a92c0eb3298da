"""Watches the workloads of one project: all summaries first, then the changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from pincompute.api.kinds import WORKLOADS
from pincompute.api.workload_summary import WorkloadChange, WorkloadSummary
from pincompute.base.problem import refuse_all
from pincompute.base.reasons import KIND_NOT_SERVED
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.client import Client
from pincompute.kube.informer import Informer
from pincompute.kube.watch import Event
from pincompute.planning.views.summary import summarize

BATCH_INTERVAL_S = 0.1
"""Changes within this interval are sent as one."""


async def watch_project(client: Client, project: str) -> AsyncGenerator[WorkloadChange]:
    """Yields all workloads once every kind was listed, then each change. Broken watches are resumed without a gap."""
    changed = asyncio.Event()

    def on_change(_: Event[Any]) -> None:
        changed.set()

    informers: list[Informer[Any]] = [
        Informer(client, CUSTOM_RESOURCES[kind], type=type_, namespace=project, on_change=on_change)
        for kind, type_ in WORKLOADS.items()
    ]
    tasks = [asyncio.create_task(each.run()) for each in informers]
    try:
        for each in informers:
            await each.responded.wait()
        problems = [each.problem for each in informers if each.problem]
        refuse_all(each for each in problems if each.reason is not KIND_NOT_SERVED or len(problems) == len(informers))
        before: dict[str, WorkloadSummary] | None = None
        while True:
            changed.clear()
            now = _summaries_by_name(informers)
            change = _difference(before or {}, now)
            if before is None or change.current or change.deleted:
                yield change
            before = now
            await changed.wait()
            await client.clock.sleep(BATCH_INTERVAL_S)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _summaries_by_name(informers: Sequence[Informer[Any]]) -> dict[str, WorkloadSummary]:
    """The oldest workload of each name. There is more than one only if workloads were created past the desk."""
    workloads = [each for informer in informers for each in informer.items.values()]
    oldest_last = sorted(workloads, key=lambda each: each.metadata.creation_timestamp, reverse=True)
    return {each.metadata.name: summarize(each) for each in oldest_last}


def _difference(before: dict[str, WorkloadSummary], now: dict[str, WorkloadSummary]) -> WorkloadChange:
    return WorkloadChange(
        current=[each for name, each in sorted(now.items()) if each != before.get(name)],
        deleted=sorted(before.keys() - now.keys()),
    )

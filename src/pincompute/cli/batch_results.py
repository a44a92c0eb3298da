"""Adds results to the summaries of batches, for `pin get NAME` in a format for programs."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from pincompute.api.job_set import PinterestJobSet
from pincompute.api.job_set_status import AttemptStatus, TaskFailure
from pincompute.api.workload_summary import WorkloadSummary
from pincompute.cli.platform_client import PlatformClient
from pincompute.cli.usage import MeasuredSummary


class BatchSummary(MeasuredSummary, frozen=True, kw_only=True, omit_defaults=False):
    """Summary of a batch with its results, as they are in its status."""

    failures: list[TaskFailure]
    """Failed tasks, grouped by reason and exit code."""
    attempts: list[AttemptStatus]
    """All attempts of the revision."""


async def add_batch_results(platform: PlatformClient, summaries: Iterable[WorkloadSummary]) -> list[WorkloadSummary]:
    """Read each batch by itself: lists leave results out, as the task numbers of a batch can take a megabyte."""
    return [
        await _read_results(platform, each) if each.kind == PinterestJobSet.__name__ else each for each in summaries
    ]


async def _read_results(platform: PlatformClient, summary: WorkloadSummary) -> WorkloadSummary:
    workload = await platform.get_workload(summary.project, summary.name)
    if not isinstance(workload, PinterestJobSet) or workload.metadata.uid != summary.uid:
        # Another workload has got this name since the summaries were read.
        return summary
    fields = msgspec.structs.asdict(summary)
    return BatchSummary(**fields, failures=workload.status.failures, attempts=workload.status.attempts)

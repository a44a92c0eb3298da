"""Subscriptions to the log volume files of a workload: each gets every batch that is stored while it is open."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from pincompute.api.logs import ContainerRun, LogBatch
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import LOGS_UNAVAILABLE

MAX_QUEUED_BATCHES = 200
MAX_QUEUED_BYTES = 4 << 20
"""A subscriber further behind is disconnected. It can subscribe again and fetch the missing lines."""
MAX_SUBSCRIPTIONS = 500
MAX_SUBSCRIPTIONS_PER_PROJECT = 50
_ENTRY_BYTES = 200
"""Memory of one line beside its text."""


class Subscription:
    """Queue of batches for one reader, bounded in number and bytes."""

    def __init__(self, project: str, workload: str) -> None:
        self.project = project
        self.workload = workload
        self._queue: asyncio.Queue[LogBatch | None] = asyncio.Queue()
        self._queued_bytes = 0

    async def get(self) -> LogBatch | None:
        """The next batch; None after the last one of a subscriber that was too slow."""
        batch = await self._queue.get()
        if batch:
            self._queued_bytes -= _size_bytes(batch)
        return batch

    def put(self, batch: LogBatch) -> bool:
        """Queues a batch, or ends the queue if it is full."""
        size = _size_bytes(batch)
        fits = self._queue.qsize() < MAX_QUEUED_BATCHES and self._queued_bytes + size <= MAX_QUEUED_BYTES
        # An empty queue takes a batch of any size: a reader that keeps up gets everything.
        if fits or self._queue.empty():
            self._queued_bytes += size
            self._queue.put_nowait(batch)
            return True
        why = f"this reader was dropped: {self._queue.qsize()} batches were waiting for it; the lines are read again"
        nothing = ContainerRun(pod="", uid="", container="")
        # Older readers ignore a batch without a file.
        self._queue.put_nowait(LogBatch(nothing, [], problem=why))
        self._queue.put_nowait(None)
        return False


class Subscribers:
    """Open subscriptions by project and workload."""

    def __init__(self) -> None:
        self._subscriptions: dict[Subscription, None] = {}

    @contextmanager
    def subscribe(self, project: str, workload: str) -> Generator[Subscription]:
        """Subscription that ends with the block. Refused if the project, or all projects, have too many."""
        of_project = sum(each.project == project for each in self._subscriptions)
        if of_project >= MAX_SUBSCRIPTIONS_PER_PROJECT or len(self._subscriptions) >= MAX_SUBSCRIPTIONS:
            what = f"{of_project} readers follow log files of {project} already, {len(self._subscriptions)} in all"
            raise Refused(Problem(LOGS_UNAVAILABLE, what, next="end some of them, or: pin logs without --follow"))
        subscription = Subscription(project, workload)
        self._subscriptions[subscription] = None
        try:
            yield subscription
        finally:
            self._subscriptions.pop(subscription, None)

    def has_subscribers(self, project: str, workload: str) -> bool:
        return any((each.project, each.workload) == (project, workload) for each in self._subscriptions)

    def publish(self, project: str, workload: str, batch: LogBatch) -> None:
        for subscription in [
            each for each in self._subscriptions if (each.project, each.workload) == (project, workload)
        ]:
            if not subscription.put(batch):
                del self._subscriptions[subscription]


def _size_bytes(batch: LogBatch) -> int:
    return sum(len(each.text) + _ENTRY_BYTES for each in batch.entries)

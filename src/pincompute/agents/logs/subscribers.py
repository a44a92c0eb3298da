"""Subscriptions to the log volume files of a workload: each gets every batch that is stored while it is open."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from pincompute.api.logs import LogBatch

MAX_QUEUED_BATCHES = 200
"""A subscriber further behind is disconnected. It can subscribe again and fetch the missing lines."""

Subscription = asyncio.Queue[LogBatch | None]


class Subscribers:
    """Open subscriptions by project and workload."""

    def __init__(self) -> None:
        self._subscriptions: dict[Subscription, tuple[str, str]] = {}

    @contextmanager
    def subscribe(self, project: str, workload: str) -> Generator[Subscription]:
        """Queue of batches. None ends it if the subscriber was too slow."""
        queue: Subscription = asyncio.Queue()
        self._subscriptions[queue] = (project, workload)
        try:
            yield queue
        finally:
            self._subscriptions.pop(queue, None)

    def has_subscribers(self, project: str, workload: str) -> bool:
        return (project, workload) in self._subscriptions.values()

    def publish(self, project: str, workload: str, batch: LogBatch) -> None:
        for queue in [each for each, key in self._subscriptions.items() if key == (project, workload)]:
            if queue.qsize() < MAX_QUEUED_BATCHES:
                queue.put_nowait(batch)
            else:
                del self._subscriptions[queue]
                queue.put_nowait(None)

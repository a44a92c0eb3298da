"""Those who follow the files of a workload: each is told of every batch that is stored while it listens."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from pincompute.api.logs import Fresh

WAITING = 200
"""Batches that one may be behind: who reads more slowly is let go, and comes back for the rest."""

Heard = asyncio.Queue[Fresh | None]


class Hearers:
    def __init__(self) -> None:
        self._of: dict[Heard, tuple[str, str]] = {}

    @contextmanager
    def listening(self, project: str, workload: str) -> Generator[Heard]:
        """Nothing is heard at the end, where it was too much."""
        queue: Heard = asyncio.Queue()
        self._of[queue] = (project, workload)
        try:
            yield queue
        finally:
            self._of.pop(queue, None)

    def any(self, project: str, workload: str) -> bool:
        return (project, workload) in self._of.values()

    def tell(self, project: str, workload: str, fresh: Fresh) -> None:
        for queue in [each for each, of in self._of.items() if of == (project, workload)]:
            if queue.qsize() < WAITING:
                queue.put_nowait(fresh)
            else:
                del self._of[queue]
                queue.put_nowait(None)

"""Checks that the database accepts writes."""

from __future__ import annotations

import asyncio

from pincompute.base.clock import Clock
from pincompute.desk.store.database import Database, write_nothing

_MIN_INTERVAL_S = 1.0


class WriteCheck:
    """Anybody may ask, so one write answers all who ask within a second."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._write: asyncio.Task[None] | None = None
        self._began = 0.0

    async def run(self) -> None:
        """Raises DatabaseFull, or the error of the database."""
        now = self._clock.monotonic()
        if self._write is None or (self._write.done() and now - self._began >= _MIN_INTERVAL_S):
            self._began = now
            self._write = asyncio.create_task(self._database.transact(write_nothing))
        await asyncio.shield(self._write)

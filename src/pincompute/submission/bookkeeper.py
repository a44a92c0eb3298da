"""The bookkeeper: keeps the ledger as the platform is, whoever wrote there, so that it never leaks."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial

import structlog

from pincompute.base.clock import Clock
from pincompute.planning.quotas.footprint import Place
from pincompute.submission import ledger
from pincompute.submission.database import Connection, Database
from pincompute.submission.platform import Platform, Sight
from pincompute.submission.shift import Shift

AGAIN = 1.0
"""Seconds between two looks at whether something that was written can be seen; most are seen before the first."""

FEW = 100
"""Workloads whose rows are written in next to no time."""

log = structlog.get_logger()


class Bookkeeper:
    """Of one platform."""

    def __init__(self, database: Database, platform: Platform, clock: Clock) -> None:
        self._database = database
        self._platform = platform
        self._clock = clock
        self._expected: set[Place] = set()
        self._news = asyncio.Event()
        self._turn = asyncio.Lock()

    async def run(self, _: Shift) -> None:
        """For a shift; what goes wrong with one sight is mended by the next that shows everything."""
        while True:
            # What was written before may not be seen yet.
            self._news.set()
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(self._observe())
                    both.create_task(self._look_again())
            except* Exception:
                log.exception("the ledger could not be kept")
                await self._clock.sleep(AGAIN)

    def expect(self, place: Place) -> None:
        """Something was written there; it holds what it held before as well, until that can be seen."""
        self._expected.add(place)
        self._news.set()

    async def _observe(self) -> None:
        async with aclosing(self._platform.observe()) as sights:
            async for sight in sights:
                await self._enter(sight)

    async def _look_again(self) -> None:
        """What is seen before it is known here that it was written would otherwise be forgotten."""
        await self._platform.seen()
        while True:
            await self._news.wait()
            self._news.clear()
            seen = tuple(map(self._platform.look, sorted(self._expected)))
            await self._enter(Sight(seen))
            self._expected = set(await self._database.do(partial(ledger.unsettled, cluster=self._platform.name)))
            if self._expected:
                await self._clock.sleep(AGAIN)
                self._news.set()

    async def _enter(self, sight: Sight) -> None:
        def work(connection: Connection) -> None:
            if sight.whole is not None:
                ledger.restore(connection, self._platform.name, sight.seen, sight.whole)
            else:
                ledger.settle(connection, self._platform.name, sight.seen)

        # Each later than the one before it: what was seen first is never written last.
        async with self._turn:
            # There may be as much of it as there are workloads, or were.
            await self._database.do(work, long=sight.whole is not None or len(sight.seen) > FEW)

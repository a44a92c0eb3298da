"""Keeps the ledger equal to the platform, where other clients change workloads, too; so no quota leaks."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial

import structlog

from pincompute.base.clock import Clock
from pincompute.desk.leadership import Leadership
from pincompute.desk.store import ledger
from pincompute.desk.store.database import Connection, Database
from pincompute.planning.footprint import WorkloadKey
from pincompute.platforms.protocol import Platform, UsageUpdate

_RECHECK_INTERVAL_S = 1.0
"""Time between two checks whether a write is visible on the platform. Most are visible at the first."""
_MAX_FAST_ROWS = 100
"""Updates of more workloads than this are written as slow transactions."""

log = structlog.get_logger()


class LedgerSync:
    """A leader task: watches one platform, and writes its usage to the ledger."""

    def __init__(self, database: Database, platform: Platform, clock: Clock) -> None:
        self._database = database
        self._platform = platform
        self._clock = clock
        self._unobserved: set[WorkloadKey] = set()
        self._recheck = asyncio.Event()
        self._write_lock = asyncio.Lock()

    async def run(self, _: Leadership) -> None:
        """Runs until cancelled. After a failure it begins with a full resync, so no update is missed."""
        while True:
            # The former leader may have left writes that were not visible yet.
            self._recheck.set()
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._follow_platform())
                    group.create_task(self._recheck_writes())
            except* Exception:
                log.exception("ledger sync failed")
                await self._clock.sleep(_RECHECK_INTERVAL_S)

    def expect_write(self, key: WorkloadKey) -> None:
        """A submission was delivered: its reservation ends as soon as the write is visible."""
        self._unobserved.add(key)
        self._recheck.set()

    async def _follow_platform(self) -> None:
        async with aclosing(self._platform.watch_usage()) as updates:
            async for update in updates:
                await self._write_update(update)

    async def _recheck_writes(self) -> None:
        """Ends reservations of writes that were visible before they were recorded as delivered.

        Their watch event came too early to end the reservation, and no other event may follow.
        """
        await self._platform.wait_synced()
        while True:
            await self._recheck.wait()
            self._recheck.clear()
            observed = tuple(map(self._platform.observed_usage, sorted(self._unobserved)))
            await self._write_update(UsageUpdate(observed))
            read = partial(ledger.unobserved_writes, cluster=self._platform.name)
            self._unobserved = set(await self._database.transact(read))
            if self._unobserved:
                await self._clock.sleep(_RECHECK_INTERVAL_S)
                self._recheck.set()

    async def _write_update(self, update: UsageUpdate) -> None:
        def write(connection: Connection) -> None:
            if update.resync_revisions is not None:
                ledger.resync(connection, self._platform.name, update.observed, update.resync_revisions)
            else:
                ledger.apply_observed(connection, self._platform.name, update.observed)

        slow = update.resync_revisions is not None or len(update.observed) > _MAX_FAST_ROWS
        # In the order of observation: an older state must not be written after a newer one.
        async with self._write_lock:
            await self._database.transact(write, slow=slow)

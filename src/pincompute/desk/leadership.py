"""Leadership: of several desks with one database, one delivers what all accept, and keeps the ledger.

It is a lock that its holder cannot outlive: it is released at once when the process dies, and after a timeout when the
process hangs.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from fcntl import LOCK_EX, LOCK_NB, flock
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

if TYPE_CHECKING:
    import asyncpg

_FILE_LOCK_POLL_S = 0.1
SESSION_TIMEOUT_S = 15.0
"""Time after which PostgreSQL ends the session, and with it the lock, of a desk that it has not heard from."""

log = structlog.get_logger()


class Leadership:
    """The lock, as its holder knows it."""

    def __init__(self) -> None:
        self.lost = asyncio.Event()
        self._held_until = float("inf")

    def extend_until(self, until: float) -> None:
        self._held_until = until

    def is_held(self) -> bool:
        """Whether no other desk can be the leader now.

        A process that was stopped for a while has not heard yet that it lost the lock; so the time counts, too.
        """
        return not self.lost.is_set() and time.monotonic() < self._held_until


LeaderTask = Callable[[Leadership], Coroutine[Any, Any, None]]
AcquireLeadership = Callable[[], AbstractAsyncContextManager[Leadership]]


async def run_leader_tasks(acquire: AcquireLeadership, tasks: Sequence[LeaderTask]) -> None:
    """Runs the tasks whenever this desk is the leader. Never returns."""
    while True:
        try:
            async with acquire() as leadership, asyncio.TaskGroup() as group:
                running = [group.create_task(task(leadership)) for task in tasks]
                await leadership.lost.wait()
                log.warning("leadership lost")
                for task_ in running:
                    task_.cancel()
        except* Exception:
            log.exception("leader task failed")
            await asyncio.sleep(1.0)


@asynccontextmanager
async def file_leadership(file: Path) -> AsyncGenerator[Leadership]:
    """A lock on a file beside the database: closing the database file itself would release SQLite's own locks."""
    handle = os.open(f"{file}-shift", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        await _lock_file(handle)
        yield Leadership()
    finally:
        os.close(handle)


@asynccontextmanager
async def postgres_leadership(
    address: str,
    platform: str,
    timeout_s: float = SESSION_TIMEOUT_S,
    heartbeat_interval_s: float = SESSION_TIMEOUT_S / 6,
) -> AsyncGenerator[Leadership]:
    """An advisory lock of a session, which the server ends when it hears nothing from it."""
    # Imported here, because a desk with a file starts faster without it.
    import asyncpg

    timeout = f"{timeout_s:g}s"
    settings = {"idle_session_timeout": timeout, "tcp_keepalives_idle": "5", "tcp_user_timeout": timeout}
    session = await asyncpg.connect(address, server_settings=settings, timeout=timeout_s)
    try:
        leadership = Leadership()
        session.add_termination_listener(partial(_mark_lost, leadership))
        await session.execute("SELECT pg_advisory_lock(hashtext('desk'), hashtext($1))", platform)
        leadership.extend_until(time.monotonic() + timeout_s / 2)
        heartbeat = asyncio.create_task(_send_heartbeats(session, leadership, timeout_s, heartbeat_interval_s))
        try:
            yield leadership
        finally:
            heartbeat.cancel()
            await asyncio.gather(heartbeat, return_exceptions=True)
    finally:
        session.terminate()


async def _lock_file(handle: int) -> None:
    while True:
        try:
            flock(handle, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            await asyncio.sleep(_FILE_LOCK_POLL_S)
        else:
            return


def _mark_lost(leadership: Leadership, _: object) -> None:
    leadership.lost.set()


async def _send_heartbeats(
    session: asyncpg.Connection, leadership: Leadership, timeout_s: float, interval_s: float
) -> None:
    """Extends the leadership by half the server's timeout, so that a write that is under way ends before the lock."""
    try:
        while True:
            await asyncio.sleep(interval_s)
            sent_at = time.monotonic()
            await asyncio.wait_for(session.execute("SELECT 1"), timeout_s / 2)
            leadership.extend_until(sent_at + timeout_s / 2)
    finally:
        leadership.lost.set()

"""The shift: of several desks before one record, one carries what all accept, and keeps the ledger.

It is a lock that ends with whoever holds it: at once where a process dies, and after a while where it only hangs.
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

AGAIN = 0.1
"""Seconds between two looks at whether a file is free."""
LIMIT = 15.0
"""Seconds after which PostgreSQL lets go of who has not been heard of."""

log = structlog.get_logger()


class Shift:
    """Held for as long as it is certain that nobody else can have it."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self._last = float("inf")

    def lasts(self, until: float) -> None:
        self._last = until

    def certain(self) -> bool:
        """A process that was stopped for a while does not know yet that another went on."""
        return not self.ended.is_set() and time.monotonic() < self._last


Duty = Callable[[Shift], Coroutine[Any, Any, None]]
Shifts = Callable[[], AbstractAsyncContextManager[Shift]]


async def serve(shifts: Shifts, duties: Sequence[Duty]) -> None:
    """Shift after shift, do what goes with it."""
    while True:
        try:
            async with shifts() as shift, asyncio.TaskGroup() as together:
                working = [together.create_task(duty(shift)) for duty in duties]
                await shift.ended.wait()
                log.warning("the shift has ended: another desk may carry now")
                for each in working:
                    each.cancel()
        except* Exception:
            log.exception("a shift ended early")
            await asyncio.sleep(1.0)


@asynccontextmanager
async def of_a_file(file: Path) -> AsyncGenerator[Shift]:
    """Beside the file: SQLite would lose its own locks if somebody else closed the same one."""
    handle = os.open(f"{file}-shift", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        await _take(handle)
        yield Shift()
    finally:
        os.close(handle)


@asynccontextmanager
async def of_a_server(address: str, name: str, limit: float = LIMIT, every: float = LIMIT / 6) -> AsyncGenerator[Shift]:
    """A lock of a session, which the server ends when nothing is heard from it."""
    # Whose record lies in a file should not wait for this.
    import asyncpg

    seconds = f"{limit:g}s"
    told = {"idle_session_timeout": seconds, "tcp_keepalives_idle": "5", "tcp_user_timeout": seconds}
    session = await asyncpg.connect(address, server_settings=told, timeout=limit)
    try:
        shift = Shift()
        session.add_termination_listener(partial(_end, shift))
        await session.execute("SELECT pg_advisory_lock(hashtext('desk'), hashtext($1))", name)
        shift.lasts(time.monotonic() + limit / 2)
        beating = asyncio.create_task(_beat(session, shift, limit, every))
        try:
            yield shift
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)
    finally:
        session.terminate()


async def _take(handle: int) -> None:
    while True:
        try:
            flock(handle, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            await asyncio.sleep(AGAIN)
        else:
            return


def _end(shift: Shift, _: object) -> None:
    shift.ended.set()


async def _beat(session: asyncpg.Connection, shift: Shift, limit: float, every: float) -> None:
    """Each is heard well before the server loses patience, and there is room for what is on its way just then."""
    try:
        while True:
            await asyncio.sleep(every)
            asked = time.monotonic()
            await asyncio.wait_for(session.execute("SELECT 1"), limit / 2)
            shift.lasts(asked + limit / 2)
    finally:
        shift.ended.set()

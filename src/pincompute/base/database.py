"""SQL databases: SQLite in a file, or PostgreSQL. Every piece of work is one transaction.

A transaction is a plain function of a connection, so that the same code runs on both.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import sqlalchemy as sql
from sqlalchemy.ext.asyncio import create_async_engine

T = TypeVar("T")
_POSTGRES_DISK_FULL = "53100"
_SQLITE_PRIMARY_CODE = 0xFF
"""Mask of an SQLite error code without the bits that tell more."""
Connection = sql.Connection
TransactionBody = Callable[[Connection], T]

BUSY_TIMEOUT_MS = 30_000
"""How long a transaction waits for that of another process."""
_MAX_BATCH = 64
"""Transactions that are committed to disk together."""
_MAX_LOOP_BLOCK_S = 0.002
"""How long transactions may run on the event loop before other tasks have a turn."""


class DatabaseFull(Exception):  # noqa: N818  (a state, as Refused)
    """The disk of the database is full, and nothing of the transaction is stored. It works again once there is room."""


class Database(Protocol):
    shared: bool
    """Several processes may use it at once."""

    async def transact(self, body: TransactionBody[T], *, slow: bool = False) -> T:
        """Executes a function in a transaction, and returns once it is on disk; or raises, and nothing is changed.

        `slow` is for queries whose duration grows with the amount of data: they run on a thread.
        """
        ...

    async def close(self) -> None: ...


def open_sql_database(address: str) -> Database:
    """A file, or `postgresql://…`."""
    return PostgresDatabase(address) if "://" in address else SqliteDatabase(Path(address))


class SqliteDatabase:
    """SQLite. It has one writer at a time: transactions that arrive during a commit are committed together.

    Commits, and slow transactions, run on a thread. Others run on the event loop: a statement takes less time than
    handing it to a thread and getting the result back from a busy loop.
    """

    shared = False

    def __init__(self, file: Path) -> None:
        self.file = file
        if not file.exists():
            # Its contents may be confidential.
            file.touch(mode=0o600)
        self._engine = sql.create_engine(
            f"sqlite:///{file}",
            poolclass=sql.StaticPool,
            # Values of a row may be confidential, so they must not appear in errors and logs.
            hide_parameters=True,
            # Used by the loop and by one thread, never at the same time.
            connect_args={"check_same_thread": False},
        )
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="record")
        self._queue: deque[_Queued] = deque()
        self._worker: asyncio.Task[None] | None = None
        sql.event.listen(self._engine, "connect", _configure_connection)
        sql.event.listen(self._engine, "handle_error", _raise_if_full)
        sql.event.listen(self._engine, "begin", _begin_immediate)

    async def transact(self, body: TransactionBody[T], *, slow: bool = False) -> T:
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue.append(_Queued(body, done, slow))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work_off_queue())
        return await done

    async def close(self) -> None:
        if self._worker:
            await self._worker
        await self._on_thread(self._engine.dispose)
        self._thread.shutdown()

    async def _work_off_queue(self) -> None:
        while self._queue:
            batch = self._next_batch()
            _set_results(batch, await self._execute_batch(batch))

    def _next_batch(self) -> list[_Queued]:
        """A slow transaction is a batch of its own, so that no transaction that came before it waits for it."""
        batch = [self._queue.popleft()]
        while self._queue and len(batch) < _MAX_BATCH and not (batch[0].slow or self._queue[0].slow):
            batch.append(self._queue.popleft())
        return batch

    async def _execute_batch(self, batch: Sequence[_Queued]) -> list[_Outcome]:
        # First without savepoints, as nearly always all of them succeed. If one raises, again with one for each.
        for execute in (_execute_plain, _execute_in_savepoint):
            try:
                async with self._transaction() as connection:
                    return await self._execute_each(connection, execute, batch)
            except Exception as error:
                if len(batch) == 1:
                    return [_Outcome(error=error)]
        # The commit itself has failed, and nothing of it is stored. Each alone, so that only the culprit fails.
        return [outcome for each in batch for outcome in await self._execute_batch([each])]

    @asynccontextmanager
    async def _transaction(self) -> AsyncGenerator[Connection]:
        with self._engine.connect() as connection:
            # Waits if another process has the file.
            await self._on_thread(connection.begin)
            yield connection
            await self._on_thread(connection.commit)

    async def _execute_each(
        self, connection: Connection, execute: _Execute, batch: Sequence[_Queued]
    ) -> list[_Outcome]:
        outcomes: list[_Outcome] = []
        loop = asyncio.get_running_loop()
        yield_at = loop.time() + _MAX_LOOP_BLOCK_S
        for queued in batch:
            if loop.time() > yield_at:
                await asyncio.sleep(0)
                yield_at = loop.time() + _MAX_LOOP_BLOCK_S
            work = partial(execute, connection, queued.body)
            outcomes.append(await self._on_thread(work) if queued.slow else work())
        return outcomes

    async def _on_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


class _Queued(NamedTuple):
    body: TransactionBody[Any]
    done: asyncio.Future[Any]
    slow: bool


class _Outcome(NamedTuple):
    value: Any = None
    error: Exception | None = None


_Execute = Callable[[Connection, TransactionBody[Any]], _Outcome]


def _execute_plain(connection: Connection, body: TransactionBody[Any]) -> _Outcome:
    return _Outcome(body(connection))


def _execute_in_savepoint(connection: Connection, body: TransactionBody[Any]) -> _Outcome:
    savepoint = connection.begin_nested()
    try:
        value = body(connection)
    except Exception as error:
        savepoint.rollback()
        return _Outcome(error=error)
    savepoint.commit()
    return _Outcome(value)


def _set_results(batch: Sequence[_Queued], outcomes: Sequence[_Outcome]) -> None:
    for queued, outcome in zip(batch, outcomes, strict=True):
        if queued.done.done():
            # The caller was cancelled.
            continue
        if outcome.error is None:
            queued.done.set_result(outcome.value)
        else:
            queued.done.set_exception(outcome.error)


class PostgresDatabase:
    """PostgreSQL, by its address `postgresql://…`."""

    shared = True

    def __init__(self, url: str) -> None:
        self.url = url
        driver_url = sql.make_url(url).set(drivername="postgresql+asyncpg")
        self._engine = create_async_engine(
            driver_url, pool_size=8, max_overflow=0, pool_pre_ping=True, hide_parameters=True
        )
        sql.event.listen(self._engine.sync_engine, "handle_error", _drop_row_details)
        sql.event.listen(self._engine.sync_engine, "handle_error", _raise_if_full)

    async def transact(self, body: TransactionBody[T], *, slow: bool = False) -> T:
        # The statements run on the server, so slow ones block nothing here.
        async with self._engine.begin() as connection:
            return await connection.run_sync(body)

    async def close(self) -> None:
        await self._engine.dispose()


def _configure_connection(connection: Any, _: object) -> None:
    # Otherwise Python's driver begins transactions by itself.
    connection.isolation_level = None
    for pragma in (
        "journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", f"busy_timeout = {BUSY_TIMEOUT_MS}",
    ):  # fmt: skip
        connection.execute(f"PRAGMA {pragma}")


def _begin_immediate(connection: Connection) -> None:
    # With the write lock from the beginning: of two transactions that have read, only one could upgrade its lock.
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _drop_row_details(context: sql.engine.ExceptionContext) -> None:
    """PostgreSQL quotes the row in an error's details, and errors are logged."""
    cause = context.original_exception.__cause__
    if cause is not None:
        vars(cause).pop("detail", None)


def _raise_if_full(context: sql.engine.ExceptionContext) -> None:
    error = context.original_exception
    code = getattr(error, "sqlite_errorcode", 0) & _SQLITE_PRIMARY_CODE
    if code == sqlite3.SQLITE_FULL or getattr(error, "sqlstate", "") == _POSTGRES_DISK_FULL:
        raise DatabaseFull(str(error)) from None

"""Where the record lies: one file by default, or a PostgreSQL; every piece of work on it is one transaction.

A piece of work is a plain function of a connection, so that it is the same for both.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import sqlalchemy as sql
from alembic import command
from alembic.config import Config
from sqlalchemy.ext.asyncio import create_async_engine

from pincompute.submission.shift import Shift, of_a_file, of_a_server

T = TypeVar("T")
Connection = sql.Connection
Work = Callable[[Connection], T]

PATIENCE_MS = 30_000
"""How long a transaction waits for that of another process."""
TOGETHER = 64
"""Pieces of work that go to the disk at once, at most."""


class Database(Protocol):
    shared: bool
    """Several desks may be before it."""

    async def do(self, work: Work[T]) -> T:
        """All of it, on disk, or nothing."""
        ...

    def shift(self, platform: str) -> AbstractAsyncContextManager[Shift]:
        """Entered when nobody else has that of this platform."""
        ...

    async def close(self) -> None: ...


async def open_database(where: str) -> Database:
    """With the tables that this version wants."""
    database = Server(where) if "://" in where else File(Path(where))
    await database.do(migrate)
    return database


class File:
    """SQLite. One thread does everything: it has one writer at a time anyway.

    What is asked while it writes waits, and then goes to the disk together: that is what takes the time.
    """

    shared = False

    def __init__(self, file: Path) -> None:
        self._file = file
        if not file.exists():
            # What people submit is nobody else's to read.
            file.touch(mode=0o600)
        # What is written into a row may be nobody's business: it stands in no error, and so in no log.
        self._engine = sql.create_engine(f"sqlite:///{file}", poolclass=sql.StaticPool, hide_parameters=True)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="record")
        self._asked: deque[_Asked] = deque()
        sql.event.listen(self._engine, "connect", _prepared)
        sql.event.listen(self._engine, "begin", _begin)

    async def do(self, work: Work[T]) -> T:
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._asked.append(_Asked(work, done))
        if len(self._asked) == 1:
            # Whoever else waits is taken along.
            self._thread.submit(self._together, done.get_loop())
        return await done

    def shift(self, platform: str) -> AbstractAsyncContextManager[Shift]:
        return of_a_file(self._file)

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._engine.dispose)
        self._thread.shutdown()

    def _together(self, loop: asyncio.AbstractEventLoop) -> None:
        """All that waits; who comes when nobody does calls for the next time."""
        while self._asked:
            asked = [self._asked.popleft() for _ in range(min(len(self._asked), TOGETHER))]
            loop.call_soon_threadsafe(_tell, asked, self._outcomes([each.work for each in asked]))

    def _outcomes(self, works: Sequence[Work[Any]]) -> list[_Outcome]:
        # Nearly always all of them can be done, and nobody has to be kept apart from the others.
        for one in (_with_all, _by_itself):
            try:
                with self._engine.begin() as connection:
                    return [one(connection, work) for work in works]
            except Exception as error:
                if len(works) == 1:
                    return [_Outcome(error=error)]
        # Nothing of it is there, and whose fault that is shows when each goes alone.
        return [outcome for work in works for outcome in self._outcomes([work])]


class _Asked(NamedTuple):
    work: Work[Any]
    done: asyncio.Future[Any]


class _Outcome(NamedTuple):
    value: Any = None
    error: Exception | None = None


def _with_all(connection: Connection, work: Work[Any]) -> _Outcome:
    return _Outcome(work(connection))


def _by_itself(connection: Connection, work: Work[Any]) -> _Outcome:
    """Within what others do as well, all of it or nothing."""
    own = connection.begin_nested()
    try:
        value = work(connection)
    except Exception as error:
        own.rollback()
        return _Outcome(error=error)
    own.commit()
    return _Outcome(value)


def _tell(asked: Sequence[_Asked], outcomes: Sequence[_Outcome]) -> None:
    for each, outcome in zip(asked, outcomes, strict=True):
        if each.done.done():
            # Whoever asked has left.
            continue
        if outcome.error is None:
            each.done.set_result(outcome.value)
        else:
            each.done.set_exception(outcome.error)


class Server:
    """PostgreSQL, named as `postgresql://…`."""

    shared = True

    def __init__(self, url: str) -> None:
        self._url = url
        named = sql.make_url(url).set(drivername="postgresql+asyncpg")
        self._engine = create_async_engine(named, pool_size=8, max_overflow=0, pool_pre_ping=True, hide_parameters=True)
        sql.event.listen(self._engine.sync_engine, "handle_error", _without_the_row)

    async def do(self, work: Work[T]) -> T:
        async with self._engine.begin() as connection:
            return await connection.run_sync(work)

    def shift(self, platform: str) -> AbstractAsyncContextManager[Shift]:
        return of_a_server(self._url, platform)

    async def close(self) -> None:
        await self._engine.dispose()


def migrate(connection: Connection, shape: str = "head") -> None:
    """To the newest shape, from whichever it has."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, shape)


def _prepared(connection: Any, _: object) -> None:
    # Python's own driver would begin transactions when it likes.
    connection.isolation_level = None
    for line in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", f"busy_timeout = {PATIENCE_MS}"):
        connection.execute(f"PRAGMA {line}")


def _begin(connection: Connection) -> None:
    # With the right to write from the beginning: two who read first could not both go on.
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _without_the_row(context: sql.engine.ExceptionContext) -> None:
    """PostgreSQL says in its details what stood there, and errors are logged."""
    cause = context.original_exception.__cause__
    if cause is not None:
        vars(cause).pop("detail", None)

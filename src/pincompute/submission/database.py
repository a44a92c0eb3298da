"""Where the record lies: one file by default, or a PostgreSQL; every piece of work on it is one transaction.

A piece of work is a plain function of a connection, so that it is the same for both.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
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
AT_A_STRETCH = 0.002
"""Seconds of such work after which others have a turn."""


class Database(Protocol):
    shared: bool
    """Several desks may be before it."""

    async def do(self, work: Work[T], *, long: bool = False) -> T:
        """All of it, on disk, or nothing. What takes as long as there is much of is done aside."""
        ...

    def shift(self, platform: str) -> AbstractAsyncContextManager[Shift]:
        """Entered when nobody else has that of this platform."""
        ...

    async def close(self) -> None: ...


async def open_database(where: str) -> Database:
    """With the tables that this version wants."""
    database = Server(where) if "://" in where else File(Path(where))
    await database.do(migrate, long=True)
    return database


class File:
    """SQLite, which has one writer at a time: what is asked while it writes waits, and goes to the disk together.

    Only who waits for the disk, or takes long, does so on a thread. A statement takes less than to hand it over would,
    and than to get its turn back from a loop that has much to do.
    """

    shared = False

    def __init__(self, file: Path) -> None:
        self._file = file
        if not file.exists():
            # What people submit is nobody else's to read.
            file.touch(mode=0o600)
        # What is written into a row may be nobody's business: it stands in no error, and so in no log.
        self._engine = sql.create_engine(
            f"sqlite:///{file}",
            poolclass=sql.StaticPool,
            hide_parameters=True,
            # Whoever has it has it alone, wherever that is.
            connect_args={"check_same_thread": False},
        )
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="record")
        self._asked: deque[_Asked] = deque()
        self._working: asyncio.Task[None] | None = None
        sql.event.listen(self._engine, "connect", _prepared)
        sql.event.listen(self._engine, "begin", _begin)

    async def do(self, work: Work[T], *, long: bool = False) -> T:
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._asked.append(_Asked(work, done, long))
        if self._working is None or self._working.done():
            # Whoever else waits is taken along.
            self._working = asyncio.create_task(self._together())
        return await done

    def shift(self, platform: str) -> AbstractAsyncContextManager[Shift]:
        return of_a_file(self._file)

    async def close(self) -> None:
        if self._working:
            await self._working
        await self._aside(self._engine.dispose)
        self._thread.shutdown()

    async def _together(self) -> None:
        """All that waits; who comes when nobody does calls for the next time."""
        while self._asked:
            asked = self._next()
            _tell(asked, await self._outcomes(asked))

    def _next(self) -> list[_Asked]:
        """Who takes long goes alone, and holds up nobody who was there before."""
        asked = [self._asked.popleft()]
        while self._asked and len(asked) < TOGETHER and not (asked[0].long or self._asked[0].long):
            asked.append(self._asked.popleft())
        return asked

    async def _outcomes(self, asked: Sequence[_Asked]) -> list[_Outcome]:
        # Nearly always all of them can be done, and nobody has to be kept apart from the others.
        for one in (_with_all, _by_itself):
            try:
                async with self._transaction() as connection:
                    return await self._done(connection, one, asked)
            except Exception as error:
                if len(asked) == 1:
                    return [_Outcome(error=error)]
        # Nothing of it is there, and whose fault that is shows when each goes alone.
        return [outcome for each in asked for outcome in await self._outcomes([each])]

    @asynccontextmanager
    async def _transaction(self) -> AsyncGenerator[Connection]:
        with self._engine.connect() as connection:
            # Another process may have the file.
            await self._aside(connection.begin)
            yield connection
            await self._aside(connection.commit)

    async def _done(self, connection: Connection, one: _Way, asked: Sequence[_Asked]) -> list[_Outcome]:
        outcomes: list[_Outcome] = []
        loop = asyncio.get_running_loop()
        until = loop.time() + AT_A_STRETCH
        for each in asked:
            if loop.time() > until:
                await asyncio.sleep(0)
                until = loop.time() + AT_A_STRETCH
            work = partial(one, connection, each.work)
            outcomes.append(await self._aside(work) if each.long else work())
        return outcomes

    async def _aside(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


class _Asked(NamedTuple):
    work: Work[Any]
    done: asyncio.Future[Any]
    long: bool


class _Outcome(NamedTuple):
    value: Any = None
    error: Exception | None = None


_Way = Callable[[Connection, Work[Any]], _Outcome]


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

    async def do(self, work: Work[T], *, long: bool = False) -> T:
        # Its statements are the server's work.
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

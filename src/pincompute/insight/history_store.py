"""SQL of the history: SQLite in a file, or PostgreSQL. Entries are only added; states are replaced.

The history can be rebuilt only from now on, so that it is kept carefully; but nothing depends on it, so that tables of
another version are set aside rather than migrated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec
import sqlalchemy as sql
from sqlalchemy import BigInteger, Column, Index, Integer, Table, Text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import create_async_engine

from pincompute.api.history import HistoryEntry, HistoryPage, HistoryRequest, LastState, LastStateRequest
from pincompute.insight.recorder import KeyedEntry

T = TypeVar("T")
Connection = sql.Connection
BUSY_TIMEOUT_MS = 5_000
MAX_ENTRIES = 1_000_000
"""Entries of all projects, about half a gigabyte."""
MAX_PROJECT_ENTRIES = 100_000
"""Entries of one project, so that a busy project does not end the history of the others."""
MAX_DELETED_STATES = 10_000
"""Deleted workloads of one project with their last state."""
_BATCH_ROWS = 500

METADATA = sql.MetaData()
_NUMBER = BigInteger().with_variant(Integer, "sqlite")
"""SQLite numbers rows by itself only in a column of type INTEGER."""

entries = Table(
    "entries_1",
    METADATA,
    Column("number", _NUMBER, primary_key=True),
    Column("key", Text, nullable=False, unique=True),
    Column("at", Text, nullable=False),
    Column("project", Text, nullable=False),
    Column("workload", Text, nullable=False),
    Column("entry", Text, nullable=False),
    Index("entries_1_of", "project", "workload", "number"),
    Index("entries_1_at", "at"),
    comment="What happened to workloads. The number in the name is the version of the tables.",
)
states = Table(
    "states_1",
    METADATA,
    Column("uid", Text, primary_key=True),
    Column("project", Text, nullable=False),
    Column("workload", Text, nullable=False),
    Column("seen_at", Text, nullable=False),
    Column("deleted_at", Text, nullable=False),
    Column("state", Text, nullable=False),
    Index("states_1_of", "project", "workload"),
    comment="The last known state of each workload.",
)
_entry_decoder = msgspec.json.Decoder(HistoryEntry)
_state_decoder = msgspec.json.Decoder(LastState)


class HistoryStore(Protocol):
    async def transact(self, body: Callable[[Connection], T], *, read_only: bool = False) -> T:
        """Executes a function in a transaction, and returns once it is on disk."""
        ...

    async def close(self) -> None: ...


async def open_history_store(address: str) -> HistoryStore:
    """A file or `postgresql://…`, with its tables."""
    store = PostgresHistory(address) if "://" in address else SqliteHistory(Path(address))
    await store.transact(METADATA.create_all)
    return store


class SqliteHistory:
    """SQLite. A read needs no lock that a write has, so that they run on threads of their own."""

    def __init__(self, file: Path) -> None:
        if not file.exists():
            # Messages of workloads may be confidential.
            file.touch(mode=0o600)
        # Values of a row may be confidential, so they must not appear in errors and logs.
        self._engine = sql.create_engine(
            f"sqlite:///{file}", hide_parameters=True, connect_args={"check_same_thread": False}
        )
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="history-writer")
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="history-reader")
        sql.event.listen(self._engine, "connect", _configure_sqlite)

    async def transact(self, body: Callable[[Connection], T], *, read_only: bool = False) -> T:
        threads = self._readers if read_only else self._writer
        return await asyncio.get_running_loop().run_in_executor(threads, partial(self._execute, body))

    def _execute(self, body: Callable[[Connection], T]) -> T:
        with self._engine.begin() as connection:
            return body(connection)

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._writer, self._engine.dispose)
        self._writer.shutdown()
        self._readers.shutdown()


class PostgresHistory:
    """PostgreSQL, by its address `postgresql://…`."""

    def __init__(self, url: str) -> None:
        driver_url = sql.make_url(url).set(drivername="postgresql+asyncpg")
        self._engine = create_async_engine(
            driver_url, pool_size=4, max_overflow=0, pool_pre_ping=True, hide_parameters=True
        )

    async def transact(self, body: Callable[[Connection], T], *, read_only: bool = False) -> T:
        async with self._engine.begin() as connection:
            return await connection.run_sync(body)

    async def close(self) -> None:
        await self._engine.dispose()


def _configure_sqlite(connection: Any, _: object) -> None:
    for pragma in ("journal_mode = WAL", "synchronous = NORMAL", f"busy_timeout = {BUSY_TIMEOUT_MS}"):
        connection.execute(f"PRAGMA {pragma}")


def store_batch(connection: Connection, new: Iterable[KeyedEntry], newest: Iterable[LastState]) -> None:
    """Adds the entries with keys that are not stored yet, and replaces the states."""
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    entry_rows = [
        {
            "key": key,
            "at": entry.at,
            "project": entry.project,
            "workload": entry.workload,
            "entry": msgspec.json.encode(entry).decode().replace("\\u0000", ""),
        }
        for key, entry in new
    ]
    for some in _batches(entry_rows):
        connection.execute(insert(entries).values(some).on_conflict_do_nothing(index_elements=["key"]))
    state_rows = [
        {
            "uid": each.workload.uid,
            "project": each.workload.project,
            "workload": each.workload.name,
            "seen_at": each.seen_at,
            "deleted_at": each.deleted_at,
            "state": msgspec.json.encode(each).decode().replace("\\u0000", ""),
        }
        for each in newest
    ]
    for some in _batches(state_rows):
        statement = insert(states).values(some)
        replaced = {name: statement.excluded[name] for name in ("seen_at", "deleted_at", "state")}
        connection.execute(statement.on_conflict_do_update(index_elements=["uid"], set_=replaced))


def load_states(connection: Connection) -> list[LastState]:
    """The states of workloads that were not deleted when they were last seen."""
    rows = connection.execute(sql.select(states.c.state).where(states.c.deleted_at == ""))
    return [_state_decoder.decode(text) for (text,) in rows]


def read_history(connection: Connection, request: HistoryRequest) -> HistoryPage:
    """The newest entries; one more is read, to know whether there is another page."""
    query = request.query
    select = (
        sql.select(entries.c.number, entries.c.entry)
        .where(entries.c.project == request.project, entries.c.number < query.before)
        .order_by(entries.c.number.desc())
        .limit(query.limit + 1)
    )
    if request.workload:
        select = select.where(entries.c.workload == request.workload)
    rows = connection.execute(select).all()
    found = [
        msgspec.structs.replace(_entry_decoder.decode(text), number=number) for number, text in rows[: query.limit]
    ]
    return HistoryPage(entries=found, next=found[-1].number if len(rows) > query.limit else None)


def read_last_state(connection: Connection, request: LastStateRequest) -> LastState | None:
    """The newest state of a name: of the workload that has it, otherwise of the one that had it last."""
    select = (
        sql.select(states.c.state)
        .where(states.c.project == request.project, states.c.workload == request.workload)
        .order_by(states.c.seen_at.desc(), states.c.deleted_at)
        .limit(1)
    )
    text = connection.execute(select).scalar()
    return None if text is None else _state_decoder.decode(text)


def forget_project(connection: Connection, project: str, before: str = "") -> None:
    """Removes the history of a project; with a time only what is older."""
    for table, time in ((entries, entries.c.at), (states, states.c.seen_at)):
        statement = table.delete().where(table.c.project == project)
        connection.execute(statement.where(time < before) if before else statement)


def prune(
    connection: Connection,
    oldest: str,
    *,
    max_entries: int = MAX_ENTRIES,
    max_project_entries: int = MAX_PROJECT_ENTRIES,
    max_deleted_states: int = MAX_DELETED_STATES,
) -> None:
    """Removes what is older than a time, and the oldest of what is too much."""
    connection.execute(entries.delete().where(entries.c.at < oldest))
    connection.execute(states.delete().where(states.c.deleted_at != "", states.c.deleted_at < oldest))
    for project in _projects_above(connection, entries, max_project_entries):
        _delete_beyond(connection, entries.c.number, entries.c.project == project, max_project_entries)
    _delete_beyond(connection, entries.c.number, sql.true(), max_entries)
    for project in _projects_above(connection, states, max_deleted_states):
        kept = (
            sql.select(states.c.uid)
            .where(states.c.project == project, states.c.deleted_at != "")
            .order_by(states.c.deleted_at.desc())
            .limit(max_deleted_states)
        )
        others = states.c.project == project, states.c.deleted_at != "", states.c.uid.not_in(kept)
        connection.execute(states.delete().where(*others))


def _projects_above(connection: Connection, table: Table, limit: int) -> Sequence[str]:
    counted = sql.select(table.c.project).group_by(table.c.project).having(sql.func.count() > limit)
    return connection.execute(counted).scalars().all()


def _delete_beyond(connection: Connection, number: Column[int], where: Any, limit: int) -> None:
    """Deletes all but the newest rows."""
    newest = sql.select(number).where(where).order_by(number.desc()).offset(limit).limit(1)
    last_deleted = connection.execute(newest).scalar()
    if last_deleted is not None:
        connection.execute(entries.delete().where(where, number <= last_deleted))


def _batches(rows: list[dict[str, str]]) -> Iterable[list[dict[str, str]]]:
    return (rows[start : start + _BATCH_ROWS] for start in range(0, len(rows), _BATCH_ROWS))

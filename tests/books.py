"""What tests of the record share: somewhere to write it, submissions, and what they ask for."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from typing import Any, Protocol, cast

import sqlalchemy as sql
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from pincompute.api.project import Project, ProjectSpec, Quota, TierQuota
from pincompute.api.wire import Metadata
from pincompute.planning.quotas.footprint import Footprint, Place
from pincompute.submission import record
from pincompute.submission.accept import Proposal, accept
from pincompute.submission.database import Connection, migrate
from pincompute.submission.platform import Remove, Rendered
from pincompute.submission.record import Kept, Submission
from pincompute.submission.tables import submissions

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
CLUSTER = "main"


class Books(Protocol):
    """A record, for tests that are plain functions."""

    def begin(self) -> AbstractContextManager[Connection]:
        """What is done there is undone afterwards."""
        ...


class Memory:
    """SQLite, and nothing on disk."""

    def __init__(self) -> None:
        self.engine = sql.create_engine("sqlite://", poolclass=sql.StaticPool)
        with self.engine.begin() as connection:
            migrate(connection)

    @contextmanager
    def begin(self) -> Generator[Connection]:
        with self.engine.connect() as connection, connection.begin() as transaction:
            yield connection
            transaction.rollback()


class Served:
    """PostgreSQL by the driver that the desk has for it, which runs in a loop of its own beside the test."""

    def __init__(self, url: str, runner: asyncio.Runner) -> None:
        self._runner = runner
        self.engine = create_async_engine(sql.make_url(url).set(drivername="postgresql+asyncpg"))
        runner.run(self._migrate())

    async def _migrate(self) -> None:
        async with self.engine.begin() as connection:
            await connection.run_sync(migrate)

    @contextmanager
    def begin(self) -> Generator[Connection]:
        connection = self._runner.run(self._connected())
        yield cast("Connection", _Across(self._runner, connection))
        self._runner.run(connection.close())

    async def _connected(self) -> AsyncConnection:
        return await self.engine.connect()


class _Across:
    """A connection of asyncpg that is asked as any other."""

    def __init__(self, runner: asyncio.Runner, connection: AsyncConnection) -> None:
        self._runner = runner
        self._connection = connection
        self.dialect = connection.dialect

    def execute(self, *words: Any) -> Any:
        return self._runner.run(self._connection.run_sync(Connection.execute, *words))


@contextmanager
def books(where: str) -> Generator[Books]:
    """A PostgreSQL by its address, or one in memory."""
    if not where:
        memory = Memory()
        yield memory
        memory.engine.dispose()
        return
    with asyncio.Runner() as runner:
        served = Served(where, runner)
        yield served
        runner.run(served.engine.dispose())


def project(**on_demand: Any) -> Project:
    quota = Quota(on_demand=TierQuota(**on_demand))
    return Project(
        metadata=Metadata(name="ads"), spec=ProjectSpec(owner="team-ads", contact="#ads-oncall", quota=quota)
    )


def place(name: str) -> Place:
    return Place("ads", "PinterestService", name)


def submission(number: int, name: str = "web", key: str = "", document: str = "spec: {}") -> Submission:
    return Submission(f"s-{number}", NOW, "ann", CLUSTER, place(name), "deploy", document, key)


def cores(count: int, tier: str = "on-demand") -> Footprint:
    """So many pods of one processor each."""
    return Footprint(tier, cpu=1000 * count, pods=count)


def rendered(owner: Project | None, footprint: Footprint | None, name: str = "web") -> Rendered:
    return Rendered(place(name), Remove(), None, footprint, owner)


def one(connection: Connection, asked: Submission, proposed: Rendered) -> Kept:
    """What was submitted by itself."""
    (kept,) = accept(connection, Proposal(asked, proposed))
    return kept


def kept_of(connection: Connection, project: str, name: str) -> list[Kept]:
    """Every submission of a workload, the eldest first."""
    of_it = submissions.select().where(submissions.c.project == project, submissions.c.name == name)
    rows = connection.execute(of_it.order_by(submissions.c.number)).mappings().all()
    return [kept for each in rows if (kept := record.named(connection, project, each["id"]))]

"""Fixtures of the record: databases, submissions, and rendered workloads."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from typing import Any, Protocol, cast

import sqlalchemy as sql
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from pincompute.api.project import Project, ProjectSpec, Quota, TierQuota
from pincompute.api.structs import Metadata
from pincompute.desk.store import record
from pincompute.desk.store.database import Connection, migrate
from pincompute.desk.store.record import Submission, SubmissionRecord
from pincompute.desk.store.tables import submissions
from pincompute.desk.transaction import Proposal, record_acceptance
from pincompute.planning.footprint import Footprint, WorkloadKey
from pincompute.platforms.protocol import DeleteWorkload, RenderedWorkload

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
CLUSTER = "main"


class RecordStore(Protocol):
    """A database for synchronous tests."""

    def begin(self) -> AbstractContextManager[Connection]:
        """A transaction that is rolled back at the end."""
        ...


class MemoryRecord:
    """SQLite in memory."""

    def __init__(self) -> None:
        self.engine = sql.create_engine("sqlite://", poolclass=sql.StaticPool)
        with self.engine.begin() as connection:
            migrate(connection)

    @contextmanager
    def begin(self) -> Generator[Connection]:
        with self.engine.connect() as connection, connection.begin() as transaction:
            yield connection
            transaction.rollback()


class PostgresRecord:
    """PostgreSQL by the desk's asynchronous driver, in an event loop of its own."""

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
        try:
            yield cast("Connection", _Across(self._runner, connection))
        finally:
            # Also after a failed assertion: an open transaction would lock out the next test.
            self._runner.run(connection.close())

    async def _connected(self) -> AsyncConnection:
        return await self.engine.connect()


class _Across:
    """An asyncpg connection with the interface of a synchronous one."""

    def __init__(self, runner: asyncio.Runner, connection: AsyncConnection) -> None:
        self._runner = runner
        self._connection = connection
        self.dialect = connection.dialect

    def execute(self, *words: Any) -> Any:
        return self._runner.run(self._connection.run_sync(Connection.execute, *words))


@contextmanager
def open_record(where: str) -> Generator[RecordStore]:
    """PostgreSQL at the address; without one, SQLite in memory."""
    if not where:
        memory = MemoryRecord()
        yield memory
        memory.engine.dispose()
        return
    with asyncio.Runner() as runner:
        served = PostgresRecord(where, runner)
        yield served
        runner.run(served.engine.dispose())


def project_with_quota(**on_demand: Any) -> Project:
    quota = Quota(on_demand=TierQuota(**on_demand))
    return Project(
        metadata=Metadata(name="ads"), spec=ProjectSpec(owner="team-ads", contact="#ads-oncall", quota=quota)
    )


def workload_key(name: str) -> WorkloadKey:
    return WorkloadKey("ads", "PinterestService", name)


def new_submission(number: int, name: str = "web", key: str = "", document: str = "spec: {}") -> Submission:
    return Submission(f"s-{number}", NOW, "ann", CLUSTER, workload_key(name), "deploy", document, key)


def cores_footprint(count: int, tier: str = "on-demand") -> Footprint:
    """That of `count` pods with one core each, and a Job for each."""
    return Footprint(tier, cpu=1000 * count, pods=count, jobs=count)


def rendered_workload(owner: Project | None, footprint: Footprint | None, name: str = "web") -> RenderedWorkload:
    return RenderedWorkload(workload_key(name), DeleteWorkload(), None, footprint, owner)


def accept_one(connection: Connection, asked: Submission, proposed: RenderedWorkload) -> SubmissionRecord:
    """Accepts a single submission."""
    (kept,) = record_acceptance(connection, Proposal(asked, proposed))
    return kept


def submissions_of(connection: Connection, project: str, name: str) -> list[SubmissionRecord]:
    """The submissions of a workload, oldest first."""
    of_it = submissions.select().where(submissions.c.project == project, submissions.c.name == name)
    rows = connection.execute(of_it.order_by(submissions.c.number)).mappings().all()
    return [kept for each in rows if (kept := record.find_by_id(connection, project, each["id"]))]

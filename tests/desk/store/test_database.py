"""Migrations, transactions and the append-only audit log."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
import threading
import traceback
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sql
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from pincompute.desk.store import ledger
from pincompute.desk.store.database import (
    Connection,
    Database,
    PostgresDatabase,
    SqliteDatabase,
    migrate,
    open_database,
)
from pincompute.desk.store.tables import METADATA, audit, decisions, ledger as ledger_table, submissions
from pincompute.planning.footprint import MAX_AMOUNT, Footprint
from pincompute.platforms.protocol import ObservedUsage
from record_fixtures import CLUSTER, workload_key

FIRST = """
CREATE TABLE submissions (
    id TEXT PRIMARY KEY, at TEXT NOT NULL, project TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL,
    document TEXT NOT NULL, outcome TEXT NOT NULL, said TEXT NOT NULL DEFAULT ''
) STRICT
"""
SECRET = "s3cret"
ENTRY = {"at": "now", "who": "ann", "act": "submits", "project": "me", "about": "", "submission": "", "words": ""}


@pytest.fixture
async def database(where: str) -> AsyncGenerator[Database]:
    opened = await open_database(where)
    yield opened
    await opened.close()


@pytest.fixture
async def file(tmp_path: Path) -> AsyncGenerator[Database]:
    opened = await open_database(str(tmp_path / "desk.db"))
    yield opened
    await opened.close()


async def test_migrations_produce_the_declared_tables(database: Database) -> None:
    def differences(connection: Connection) -> object:
        return compare_metadata(MigrationContext.configure(connection), METADATA)

    assert await database.transact(differences) == []


async def test_submissions_of_the_first_desk_are_migrated(tmp_path: Path) -> None:
    file = tmp_path / "desk.sqlite"
    with sqlite3.connect(file) as before:
        before.execute(FIRST)
        for id_, outcome, said in (
            ("s-1", "written", ""),
            ("s-2", "refused", "no such project"),
            ("s-3", "received", ""),
        ):
            row = (id_, f"2026-01-3{id_[-1]}", "me", "PinterestService", "hello", "spec: {}", outcome, said)
            before.execute("INSERT INTO submissions VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    before.close()
    for _ in range(2):  # the second start has nothing to migrate
        database = await open_database(str(file))
        rows = await database.transact(
            lambda connection: connection.execute(
                sql.select(submissions.c.id, decisions.c.accepted, decisions.c.words)
                .join(decisions)
                .order_by(submissions.c.number)
            ).all()
        )
        await database.close()
        assert [tuple(each) for each in rows] == [
            ("s-1", True, ""),
            ("s-2", False, "no such project"),
            ("s-3", False, ""),
        ]


async def test_sums_include_rows_from_before_their_migration(where: str) -> None:
    before = PostgresDatabase(where) if "://" in where else SqliteDatabase(Path(where))
    await before.transact(partial(migrate, revision="0003"))
    for name in ("web", "crawl"):
        held = Footprint("on-demand", cpu=MAX_AMOUNT)
        # The columns of later migrations have defaults.
        former = ("tier", "cpu", "memory", "gpus", "pods", "bytes")
        amounts = {column: getattr(held, column) for column in former}
        row = {"cluster": CLUSTER, **workload_key(name)._asdict(), "submission": name, **amounts}
        await before.transact(lambda connection, row=row: connection.execute(ledger_table.insert(), row))
    await before.close()
    after = await open_database(where)
    own, others = await after.transact(
        partial(ledger.own_and_other_usage, cluster=CLUSTER, key=workload_key("web"), tier="on-demand")
    )
    await after.close()
    assert (own, others) == (held, held)


async def test_unobserved_writes_are_found_by_an_index(file: Database) -> None:
    """The query runs once a second on the single writer of SQLite."""

    def steps(connection: Connection, standing: int) -> int:
        taken, held, driver = 0, Footprint("on-demand"), connection.connection.driver_connection
        rows = [ObservedUsage(workload_key(f"w{number}"), held, revision=1) for number in range(standing)]
        ledger.apply_observed(connection, CLUSTER, rows)
        assert isinstance(driver, sqlite3.Connection)

        def step() -> None:
            nonlocal taken
            taken += 1

        driver.set_progress_handler(step, 1)
        found = ledger.unobserved_writes(connection, CLUSTER)
        driver.set_progress_handler(None, 1)
        assert found == [workload_key("web")]
        return taken

    await file.transact(
        partial(ledger.reserve, cluster=CLUSTER, key=workload_key("web"), submission="s", footprint=Footprint())
    )
    await file.transact(
        partial(ledger.mark_written, cluster=CLUSTER, key=workload_key("web"), submission="s", revision=2)
    )
    few, many = [await file.transact(partial(steps, standing=number)) for number in (1, 500)]
    assert many == few > 0


@pytest.mark.parametrize("statement", [audit.update().values(who="ben"), audit.delete()])
async def test_audit_log_is_append_only(database: Database, statement: sql.Executable) -> None:
    await database.transact(lambda connection: connection.execute(audit.insert().values(ENTRY)))
    with pytest.raises(sql.exc.DBAPIError, match="only ever added to"):
        await database.transact(lambda connection: connection.execute(statement))
    rows = await database.transact(lambda connection: connection.execute(audit.select()).all())
    assert [each.who for each in rows] == ["ann"]


async def test_failed_transaction_changes_nothing(database: Database) -> None:
    def fails(connection: Connection) -> None:
        connection.execute(audit.insert().values(ENTRY))
        raise LookupError

    with pytest.raises(LookupError):
        await database.transact(fails)
    assert await database.transact(lambda connection: connection.execute(audit.select()).all()) == []


async def test_concurrent_transactions_are_committed_together_and_fail_alone(file: Database) -> None:
    began, goes_on, written = threading.Event(), threading.Event(), 0

    def first(_: Connection) -> None:
        began.set()
        assert goes_on.wait(60)

    def enter(connection: Connection, who: str) -> str:
        nonlocal written
        written += 1
        connection.execute(audit.insert(), {**ENTRY, "who": who})
        if who == "ben":
            raise LookupError
        return who

    commits = 0

    def count(_: object) -> None:
        nonlocal commits
        commits += 1

    sql.event.listen(sql.engine.Engine, "commit", count)
    holding = asyncio.create_task(file.transact(first, slow=True))
    await asyncio.to_thread(began.wait)
    asked = [asyncio.create_task(file.transact(partial(enter, who=who))) for who in ("ann", "ben", "cid")]
    await asyncio.sleep(0)
    goes_on.set()
    done = await asyncio.gather(*asked, return_exceptions=True)
    await holding
    sql.event.remove(sql.engine.Engine, "commit", count)
    assert (done[0], type(done[1]), done[2]) == ("ann", LookupError, "cid")
    # With savepoints, only the failing transaction is rolled back.
    assert (commits, written) == (2, 5)
    rows = await file.transact(lambda connection: connection.execute(audit.select()).all())
    assert [each.who for each in rows] == ["ann", "cid"]


async def test_transaction_that_ends_the_batch_fails_alone(file: Database) -> None:
    def spoil(connection: Connection) -> None:
        # SQLite does so by itself when the disk is full.
        connection.exec_driver_sql("ROLLBACK")
        raise LookupError

    def enter(connection: Connection) -> None:
        connection.execute(audit.insert(), ENTRY)

    done = await asyncio.gather(*map(file.transact, (enter, spoil, enter)), return_exceptions=True)
    assert [isinstance(each, Exception) for each in done] == [False, True, False]
    assert len(await file.transact(lambda connection: connection.execute(audit.select()).all())) == 2


@pytest.mark.usefixtures("file")
async def test_database_file_is_private(tmp_path: Path) -> None:
    assert stat.S_IMODE((tmp_path / "desk.db").stat().st_mode) == 0o600


async def test_errors_quote_no_values(database: Database) -> None:
    row = {**ENTRY, "words": None, "who": SECRET}
    with pytest.raises(sql.exc.IntegrityError) as failed:
        await database.transact(lambda connection: connection.execute(audit.insert().values(row)))
    assert SECRET not in "".join(traceback.format_exception(failed.value))

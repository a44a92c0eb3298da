"""The tables: made as they are declared, taken over from what was before, and audit is never changed."""

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

from books import CLUSTER, place
from pincompute.planning.quotas.footprint import MOST, Footprint
from pincompute.submission import ledger
from pincompute.submission.database import Connection, Database, File, Server, migrate, open_database
from pincompute.submission.platform import Seen
from pincompute.submission.tables import METADATA, audit, decisions, submissions

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


async def test_migrations_lead_to_what_is_declared(database: Database) -> None:
    def differences(connection: Connection) -> object:
        return compare_metadata(MigrationContext.configure(connection), METADATA)

    assert await database.do(differences) == []


async def test_what_the_first_desk_kept_is_taken_over(tmp_path: Path) -> None:
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
    for _ in range(2):  # a second start finds it done
        database = await open_database(str(file))
        rows = await database.do(
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


async def test_what_a_ledger_held_before_it_was_added_up_counts(where: str) -> None:
    before = Server(where) if "://" in where else File(Path(where))
    await before.do(partial(migrate, shape="0003"))
    for name in ("web", "crawl"):
        held = Footprint("on-demand", cpu=MOST)
        await before.do(partial(ledger.take, cluster=CLUSTER, place=place(name), submission=name, footprint=held))
    await before.close()
    after = await open_database(where)
    own, others = await after.do(partial(ledger.taken, cluster=CLUSTER, place=place("web"), tier="on-demand"))
    await after.close()
    assert (own, others) == (held, held)


async def test_what_is_unsettled_is_found_as_soon_however_much_stands(file: Database) -> None:
    """It is asked for once a second, on the one thread of the record."""

    def steps(connection: Connection, standing: int) -> int:
        taken, held, driver = 0, Footprint("on-demand"), connection.connection.driver_connection
        rows = [Seen(place(f"w{number}"), held, revision=1) for number in range(standing)]
        ledger.settle(connection, CLUSTER, rows)
        assert isinstance(driver, sqlite3.Connection)

        def step() -> None:
            nonlocal taken
            taken += 1

        driver.set_progress_handler(step, 1)
        found = ledger.unsettled(connection, CLUSTER)
        driver.set_progress_handler(None, 1)
        assert found == [place("web")]
        return taken

    await file.do(partial(ledger.take, cluster=CLUSTER, place=place("web"), submission="s", footprint=Footprint()))
    await file.do(partial(ledger.written, cluster=CLUSTER, place=place("web"), submission="s", revision=2))
    few, many = [await file.do(partial(steps, standing=number)) for number in (1, 500)]
    assert many == few > 0


@pytest.mark.parametrize("statement", [audit.update().values(who="ben"), audit.delete()])
async def test_audit_is_only_ever_added_to(database: Database, statement: sql.Executable) -> None:
    await database.do(lambda connection: connection.execute(audit.insert().values(ENTRY)))
    with pytest.raises(sql.exc.DBAPIError, match="only ever added to"):
        await database.do(lambda connection: connection.execute(statement))
    rows = await database.do(lambda connection: connection.execute(audit.select()).all())
    assert [each.who for each in rows] == ["ann"]


async def test_work_that_fails_leaves_nothing(database: Database) -> None:
    def fails(connection: Connection) -> None:
        connection.execute(audit.insert().values(ENTRY))
        raise LookupError

    with pytest.raises(LookupError):
        await database.do(fails)
    assert await database.do(lambda connection: connection.execute(audit.select()).all()) == []


async def test_what_is_asked_at_once_goes_to_the_disk_together_and_fails_alone(file: Database) -> None:
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
    holding = asyncio.create_task(file.do(first, long=True))
    await asyncio.to_thread(began.wait)
    asked = [asyncio.create_task(file.do(partial(enter, who=who))) for who in ("ann", "ben", "cid")]
    await asyncio.sleep(0)
    goes_on.set()
    done = await asyncio.gather(*asked, return_exceptions=True)
    await holding
    sql.event.remove(sql.engine.Engine, "commit", count)
    assert (done[0], type(done[1]), done[2]) == ("ann", LookupError, "cid")
    # Who is in the way of the others shows only when they are kept apart.
    assert (commits, written) == (2, 5)
    rows = await file.do(lambda connection: connection.execute(audit.select()).all())
    assert [each.who for each in rows] == ["ann", "cid"]


async def test_who_spoils_the_whole_transaction_is_told_so_and_nobody_else(file: Database) -> None:
    def spoil(connection: Connection) -> None:
        # As SQLite does by itself when the disk is full.
        connection.exec_driver_sql("ROLLBACK")
        raise LookupError

    def enter(connection: Connection) -> None:
        connection.execute(audit.insert(), ENTRY)

    done = await asyncio.gather(*map(file.do, (enter, spoil, enter)), return_exceptions=True)
    assert [isinstance(each, Exception) for each in done] == [False, True, False]
    assert len(await file.do(lambda connection: connection.execute(audit.select()).all())) == 2


@pytest.mark.usefixtures("file")
async def test_nobody_else_may_read_the_file(tmp_path: Path) -> None:
    assert stat.S_IMODE((tmp_path / "desk.db").stat().st_mode) == 0o600


async def test_what_is_written_stands_in_no_error(database: Database) -> None:
    row = {**ENTRY, "words": None, "who": SECRET}
    with pytest.raises(sql.exc.IntegrityError) as failed:
        await database.do(lambda connection: connection.execute(audit.insert().values(row)))
    assert SECRET not in "".join(traceback.format_exception(failed.value))

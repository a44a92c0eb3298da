"""A desk continues with a database restored from a backup."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sql

from pincompute.desk.store import ledger, outbox
from pincompute.desk.store.database import Database, open_database
from pincompute.desk.store.record import SubmissionRecord, SubmissionState
from pincompute.desk.store.tables import audit
from pincompute.engine import debian
from pincompute.platforms.protocol import Delivery
from postgres_server import new_database
from record_fixtures import (
    CLUSTER,
    NOW,
    accept_one,
    cores_footprint,
    new_submission,
    project_with_quota,
    rendered_workload,
)

BOUNDED = project_with_quota(pods=5)


@pytest.fixture
def elsewhere(where: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of the same kind."""
    return new_database(request.getfixturevalue("server")) if "://" in where else str(tmp_path / "other.db")


async def _ask(database: Database, number: int, key: str, pods: int) -> SubmissionRecord:
    asked = new_submission(number, key, key=key)
    return await database.transact(
        partial(accept_one, asked=asked, proposed=rendered_workload(BOUNDED, cores_footprint(pods), key))
    )


async def test_desk_continues_with_a_restored_database(where: str, elsewhere: str, tmp_path: Path) -> None:
    database = await open_database(where)
    first, second = await _ask(database, 1, "one", 2), await _ask(database, 2, "two", 1)
    done = partial(outbox.record_delivery, submission=new_submission(1), at=NOW, delivery=Delivery({}, 7))
    await database.transact(done)
    # While the database is in use.
    await asyncio.to_thread(_copied, where, elsewhere, tmp_path / "copy")
    await database.close()

    restored = await open_database(elsewhere)
    assert (await _ask(restored, 3, "one", 2)).id == first.id
    assert await _ask(restored, 4, "two", 1) == second
    waiting = await restored.transact(partial(outbox.undelivered_entries, cluster=CLUSTER))
    assert [each.submission.id for each in waiting] == [second.id]
    held = await restored.transact(partial(ledger.held_by_workload, cluster=CLUSTER, project="ads", tier="on-demand"))
    assert {name: each.pods for (_, name), each in held.items()} == {"one": 2, "two": 1}
    assert (await _ask(restored, 5, "more", 3)).state is SubmissionState.REFUSED
    assert (await _ask(restored, 6, "fits", 2)).state is SubmissionState.ACCEPTED
    with pytest.raises(sql.exc.DBAPIError, match="only ever added to"):
        await restored.transact(lambda connection: connection.execute(audit.delete()))
    await restored.close()


def _copied(where: str, elsewhere: str, copy: Path) -> None:
    """As described in docs/desk.md."""
    if "://" not in where:
        reading = sqlite3.connect(where)
        reading.execute("VACUUM INTO ?", (str(copy),))
        reading.close()
        copy.rename(elsewhere)
        return
    debian.ensure_programs("pg_dump", "pg_restore")
    for name, *words in (
        ("pg_dump", "--format=custom", f"--file={copy}", where),
        ("pg_restore", "--no-owner", f"--dbname={elsewhere}", str(copy)),
    ):
        program = debian.find_program(name)
        assert program
        subprocess.run([program, *words], check=True)

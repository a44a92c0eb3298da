"""A copy of the record, brought back into an empty place: a desk goes on with it."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sql

from books import CLUSTER, NOW, cores, one, project, rendered, submission
from pincompute.engine import debian
from pincompute.submission import ledger, outbox
from pincompute.submission.database import Database, open_database
from pincompute.submission.platform import Delivered
from pincompute.submission.record import Kept, State
from pincompute.submission.tables import audit
from postgres import new_database

BOUNDED = project(pods=5)


@pytest.fixture
def elsewhere(where: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty place of the same kind."""
    return new_database(request.getfixturevalue("server")) if "://" in where else str(tmp_path / "other.db")


async def _ask(database: Database, number: int, key: str, pods: int) -> Kept:
    asked = submission(number, key, key=key)
    return await database.do(partial(one, asked=asked, proposed=rendered(BOUNDED, cores(pods), key)))


async def test_a_desk_goes_on_with_what_was_brought_back(where: str, elsewhere: str, tmp_path: Path) -> None:
    database = await open_database(where)
    first, second = await _ask(database, 1, "one", 2), await _ask(database, 2, "two", 1)
    done = partial(outbox.delivered, submission=submission(1), at=NOW, found=Delivered({}, 7))
    await database.do(done)
    # While it is at work.
    await asyncio.to_thread(_copied, where, elsewhere, tmp_path / "copy")
    await database.close()

    restored = await open_database(elsewhere)
    assert (await _ask(restored, 3, "one", 2)).id == first.id
    assert await _ask(restored, 4, "two", 1) == second
    waiting = await restored.do(partial(outbox.waiting, cluster=CLUSTER))
    assert [each.submission.id for each in waiting] == [second.id]
    held = await restored.do(partial(ledger.held, cluster=CLUSTER, project="ads", tier="on-demand"))
    assert {name: each.pods for (_, name), each in held.items()} == {"one": 2, "two": 1}
    assert (await _ask(restored, 5, "more", 3)).state is State.REFUSED
    assert (await _ask(restored, 6, "fits", 2)).state is State.ACCEPTED
    with pytest.raises(sql.exc.DBAPIError, match="only ever added to"):
        await restored.do(lambda connection: connection.execute(audit.delete()))
    await restored.close()


def _copied(where: str, elsewhere: str, copy: Path) -> None:
    """As docs/desk.md says it."""
    if "://" not in where:
        reading = sqlite3.connect(where)
        reading.execute("VACUUM INTO ?", (str(copy),))
        reading.close()
        copy.rename(elsewhere)
        return
    debian.bring("pg_dump", "pg_restore")
    for name, *words in (
        ("pg_dump", "--format=custom", f"--file={copy}", where),
        ("pg_restore", "--no-owner", f"--dbname={elsewhere}", str(copy)),
    ):
        program = debian.program(name)
        assert program
        subprocess.run([program, *words], check=True)

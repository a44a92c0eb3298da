"""The record: nothing is done that is not on it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pincompute.submission.database import open_database
from pincompute.submission.record import Outcome, Record, Submission

ONE = Submission("submission-1", datetime(2026, 1, 31, tzinfo=UTC), "me", "PinterestService", "hello", "deploy", "{}")


@pytest.fixture
async def record(tmp_path: Path) -> AsyncGenerator[Record]:
    opened = Record(await open_database(str(tmp_path / "desk.db")))
    yield opened
    await opened.close()


async def test_what_is_received_is_there_before_its_outcome(record: Record) -> None:
    await record.receive(ONE)
    assert await record.outcomes("me", "hello") == [("submission-1", Outcome.RECEIVED, "")]
    await record.conclude("submission-1", Outcome.REFUSED, "no such project")
    assert await record.outcomes("me", "hello") == [("submission-1", Outcome.REFUSED, "no such project")]


async def test_it_survives_its_process(record: Record, tmp_path: Path) -> None:
    await record.receive(ONE)
    other = Record(await open_database(str(tmp_path / "desk.db")))
    assert len(await other.outcomes("me", "hello")) == 1
    await other.close()

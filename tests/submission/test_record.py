"""The record: nothing is done that is not on it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pincompute.submission.record import Outcome, Record, Submission

ONE = Submission("submission-1", datetime(2026, 1, 31, tzinfo=UTC), "me", "PinterestService", "hello", "spec: {}")


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    opened = Record(tmp_path / "desk.db")
    yield opened
    opened.close()


def test_what_is_received_is_there_before_its_outcome(record: Record) -> None:
    record.receive(ONE)
    assert record.outcomes("me", "hello") == [("submission-1", Outcome.RECEIVED, "")]
    record.conclude("submission-1", Outcome.REFUSED, "no such project")
    assert record.outcomes("me", "hello") == [("submission-1", Outcome.REFUSED, "no such project")]


def test_it_survives_its_process(record: Record, tmp_path: Path) -> None:
    record.receive(ONE)
    other = Record(tmp_path / "desk.db")
    assert len(other.outcomes("me", "hello")) == 1
    other.close()

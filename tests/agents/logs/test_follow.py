"""Files of a log volume, whatever programs do with them; and what was forgotten before it could be shipped."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from pincompute.agents.logs import volume
from pincompute.agents.logs.follow import Follower
from pincompute.agents.logs.kept import Kept
from pincompute.agents.logs.place import Stream

STREAM = Stream("me", "hello-0", "uid", "access.log")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "access.log"


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    (tmp_path / "kept").mkdir()
    return Kept(tmp_path / "kept" / "0.log")


@pytest.fixture
def follower(log: Path) -> Iterator[Follower]:
    made = Follower(STREAM, partial(volume.files, log), volume.shaped, inodes=True)
    yield made
    made.close()


def ship(follower: Follower, kept: Kept, *, last: bool = False) -> list[str]:
    if not follower.begun:
        follower.begin(kept.position)
    while batch := follower.next(last=last):
        assert kept.take(batch)
        follower.stored(batch.end)
    return [line.decode().split(" ", 3)[3] for line in kept.last()]


def test_a_line_is_shipped_when_it_is_whole_or_when_no_more_can_come(log: Path, follower: Follower, kept: Kept) -> None:
    log.write_text("one\ntw")
    assert ship(follower, kept) == ["one"]
    assert ship(follower, kept, last=True) == ["one", "tw"]


def test_a_file_that_is_turned_over_is_read_to_its_end(log: Path, follower: Follower, kept: Kept) -> None:
    log.write_text("one\n")
    ship(follower, kept)
    with log.open("a") as file:
        log.rename(f"{log}.1")
        file.write("two\nthree without an end")
    log.write_text("four\n")
    assert ship(follower, kept) == ["one", "two", "three without an end", "four"]


def test_a_file_that_is_emptied_begins_anew(log: Path, follower: Follower, kept: Kept) -> None:
    log.write_text("one\ntwo\n")
    ship(follower, kept)
    log.write_text("new\n")
    assert ship(follower, kept) == ["one", "two", "new"]


def test_what_was_removed_while_nobody_looked_is_lost_and_the_rest_is_not(
    log: Path, follower: Follower, kept: Kept
) -> None:
    log.write_text("one\ntwo\n")
    ship(follower, kept)
    follower.close()
    log.rename(f"{log}.0")
    log.write_text("three\n")
    Path(f"{log}.0").unlink()
    assert ship(follower, kept) == ["one", "two", "three"]


def test_what_has_no_position_behind_it_is_not_told(log: Path, follower: Follower, kept: Kept) -> None:
    log.write_text("one\n")
    ship(follower, kept)
    with kept.path.open("ab") as file:
        file.write(b"2026-01-01T00:00:00Z file F torn off\n")
    assert [line.rpartition(b" ")[2] for line in Kept(kept.path).last()] == [b"one"]

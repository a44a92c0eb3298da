"""Following files of a log volume through rotation, truncation and removal."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from pincompute.agents.logs import volume
from pincompute.agents.logs.follower import Follower
from pincompute.agents.logs.position import Stream
from pincompute.agents.logs.stream_file import StreamFile

STREAM = Stream("me", "hello-0", "uid", "access.log")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "access.log"


@pytest.fixture
def stored(tmp_path: Path) -> StreamFile:
    (tmp_path / "stored").mkdir()
    return StreamFile(tmp_path / "stored" / "0.log")


@pytest.fixture
def follower(log: Path) -> Iterator[Follower]:
    follower = Follower(STREAM, partial(volume.rotated_volume_files, log), volume.timestamp_lines, inodes=True)
    yield follower
    follower.close()


def ship(follower: Follower, stored: StreamFile, *, last: bool = False) -> list[str]:
    if not follower.started:
        follower.seek_to(stored.position)
    while batch := follower.next_batch(last=last):
        assert stored.append(batch)
        follower.commit(batch.end)
    return [line.decode().split(" ", 3)[3] for line in stored.tail()]


def test_ships_incomplete_line_only_at_the_end(log: Path, follower: Follower, stored: StreamFile) -> None:
    log.write_text("one\ntw")
    assert ship(follower, stored) == ["one"]
    assert ship(follower, stored, last=True) == ["one", "tw"]


def test_reads_rotated_file_to_its_end(log: Path, follower: Follower, stored: StreamFile) -> None:
    log.write_text("one\n")
    ship(follower, stored)
    with log.open("a") as file:
        log.rename(f"{log}.1")
        file.write("two\nthree without an end")
    log.write_text("four\n")
    assert ship(follower, stored) == ["one", "two", "three without an end", "four"]


def test_reads_truncated_file_from_start(log: Path, follower: Follower, stored: StreamFile) -> None:
    log.write_text("one\ntwo\n")
    ship(follower, stored)
    log.write_text("new\n")
    assert ship(follower, stored) == ["one", "two", "new"]


def test_continues_with_next_file_after_removal(log: Path, follower: Follower, stored: StreamFile) -> None:
    log.write_text("one\ntwo\n")
    ship(follower, stored)
    follower.close()
    log.rename(f"{log}.0")
    log.write_text("three\n")
    Path(f"{log}.0").unlink()
    assert ship(follower, stored) == ["one", "two", "three"]


def test_ignores_uncommitted_lines(log: Path, follower: Follower, stored: StreamFile) -> None:
    log.write_text("one\n")
    ship(follower, stored)
    with stored.path.open("ab") as file:
        file.write(b"2026-01-01T00:00:00Z file F torn off\n")
    assert [line.rpartition(b" ")[2] for line in StreamFile(stored.path).tail()] == [b"one"]

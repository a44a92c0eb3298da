"""What is remembered is written whole or not at all, and what cannot be read says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from pincompute.base import certificates
from pincompute.base.problem import Refused
from pincompute.base.reasons import NAME_INVALID, PLATFORM_UNKNOWN, RECORD_INVALID
from pincompute.engine.home import Home, home_of, known
from pincompute.engine.nodes.shape import Simulated
from pincompute.engine.processes import Process
from pincompute.engine.record import Record, read, write


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return home_of("main", tmp_path)


def test_what_was_written_is_read(home: Home):
    assert read(home) is None
    etcd = Process(part="etcd", pid=7, started=99, boot="b", ending=5.0)
    record = Record(index=4, real=True, simulated=Simulated(count=3), ports={"api": 20001}, processes={"etcd": etcd})
    write(home, record)
    assert read(home) == record
    assert (home.root / "record.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", ["", "{", '{"index": "four"}', '{"processes": {"etcd": {"pid": 1}}}', "\0" * 80])
def test_what_cannot_be_read_says_what_to_do(home: Home, content: str):
    write(home, Record())
    (home.root / "record.json").write_text(content)
    with pytest.raises(Refused) as refused:
        read(home)
    (problem,) = refused.value.problems
    assert problem.reason is RECORD_INVALID
    assert problem.next == "pin down --name main"
    assert str(home.root) in problem.text()


def test_a_write_that_fails_leaves_the_one_before(home: Home, monkeypatch: pytest.MonkeyPatch):
    write(home, Record(index=1))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(certificates.os, "fdopen", full)
    with pytest.raises(OSError, match="No space"):
        write(home, Record(index=2))
    assert read(home) == Record(index=1)


def test_a_record_of_a_newer_engine_can_still_be_read(home: Home):
    write(home, Record(index=1))
    file = home.root / "record.json"
    file.write_text(file.read_text().replace("{", '{"weather": "fine",', 1))
    assert read(home) == Record(index=1)


@pytest.mark.parametrize("name", ["a/b", "", "A", "1a", "-a", "a" * 21, "a.b", "a\n", "../a", "ä"])
def test_names_that_cannot_be_are_refused(name: str, tmp_path: Path):
    with pytest.raises(Refused) as refused:
        home_of(name, tmp_path)
    assert refused.value.problems[0].reason is NAME_INVALID


def test_a_platform_that_was_never_made_is_told_from_those_that_were(home: Home, tmp_path: Path):
    for name in ("blue", "green"):
        write(home_of(name, tmp_path), Record())
    with pytest.raises(Refused) as refused:
        known(home)
    (problem,) = refused.value.problems
    assert (problem.reason, problem.note, problem.next) == (PLATFORM_UNKNOWN, "there are: blue, green", "pin up")

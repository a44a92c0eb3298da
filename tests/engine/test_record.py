"""The record is written atomically; an unreadable one is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from pincompute.base import secure_files
from pincompute.base.problem import Refused
from pincompute.base.reasons import NAME_INVALID, PLATFORM_UNKNOWN, RECORD_INVALID
from pincompute.engine.home import Home, home_of, require_platform
from pincompute.engine.nodes.simulated_spec import SimulatedNodes
from pincompute.engine.processes import Process
from pincompute.engine.record import PlatformRecord, read_record, write_record


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return home_of("main", tmp_path)


def test_written_record_is_read(home: Home):
    assert read_record(home) is None
    etcd = Process(part="etcd", pid=7, start_ticks=99, boot="b", grace_period_s=5.0)
    record = PlatformRecord(
        network_slot=4, real=True, simulated=SimulatedNodes(count=3), ports={"api": 20001}, processes={"etcd": etcd}
    )
    write_record(home, record)
    assert read_record(home) == record
    assert (home.root / "record.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", ["", "{", '{"index": "four"}', '{"processes": {"etcd": {"pid": 1}}}', "\0" * 80])
def test_unreadable_record_suggests_pin_down(home: Home, content: str):
    write_record(home, PlatformRecord())
    (home.root / "record.json").write_text(content)
    with pytest.raises(Refused) as refused:
        read_record(home)
    (problem,) = refused.value.problems
    assert problem.reason is RECORD_INVALID
    assert problem.next == "pin down --name main"
    assert str(home.root) in problem.text()


def test_failed_write_keeps_previous_record(home: Home, monkeypatch: pytest.MonkeyPatch):
    write_record(home, PlatformRecord(network_slot=1))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(secure_files.os, "fdopen", full)
    with pytest.raises(OSError, match="No space"):
        write_record(home, PlatformRecord(network_slot=2))
    assert read_record(home) == PlatformRecord(network_slot=1)


def test_unknown_fields_of_newer_version_are_ignored(home: Home):
    write_record(home, PlatformRecord(network_slot=1))
    file = home.root / "record.json"
    file.write_text(file.read_text().replace("{", '{"weather": "fine",', 1))
    assert read_record(home) == PlatformRecord(network_slot=1)


@pytest.mark.parametrize("name", ["a/b", "", "A", "1a", "-a", "a" * 21, "a.b", "a\n", "../a", "ä"])
def test_rejects_invalid_platform_names(name: str, tmp_path: Path):
    with pytest.raises(Refused) as refused:
        home_of(name, tmp_path)
    assert refused.value.problems[0].reason is NAME_INVALID


def test_unknown_platform_lists_existing_ones(home: Home, tmp_path: Path):
    for name in ("blue", "green"):
        write_record(home_of(name, tmp_path), PlatformRecord())
    with pytest.raises(Refused) as refused:
        require_platform(home)
    (problem,) = refused.value.problems
    assert (problem.reason, problem.note, problem.next) == (
        PLATFORM_UNKNOWN,
        "existing platforms: blue, green",
        "pin up",
    )

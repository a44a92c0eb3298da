"""Concurrent commands and platforms: file locks, network slots and ports."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from ipaddress import ip_network
from itertools import pairwise
from pathlib import Path

import pytest

from pincompute.base.problem import Refused
from pincompute.engine import abandoned, network_slots, ports
from pincompute.engine.file_lock import exclusive_lock, try_exclusive_lock
from pincompute.engine.home import Home
from pincompute.engine.network_slots import service_range
from pincompute.engine.record import PlatformRecord, read_record, write_record
from pincompute.engine.up_options import UpOptions, resolve_options

HOLD = """
import sys
from pathlib import Path
from pincompute.engine.file_lock import exclusive_lock
with exclusive_lock(Path(sys.argv[1]), "pin up --name main", print):
    print("held", flush=True)
    sys.stdin.read()
"""


def start_lock_holder(file: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_second_command_reports_holder_and_waits(tmp_path: Path):
    file = tmp_path / "lock"
    messages: list[str] = []
    with start_lock_holder(file) as first:

        def record_message(line: str) -> None:
            messages.append(line)
            assert first.stdin is not None
            first.stdin.close()

        with exclusive_lock(file, "pin down", record_message):
            assert file.read_text() == f"pin down, pid {os.getpid()}"
    assert messages == [f"waiting for another command to finish (pin up --name main, pid {first.pid})"]


def test_killed_process_releases_lock(tmp_path: Path):
    with start_lock_holder(tmp_path / "lock") as first:
        first.kill()
        first.wait()
        messages: list[str] = []
        with exclusive_lock(tmp_path / "lock", "pin up", messages.append):
            assert messages == []


def test_deleted_lock_file_is_not_reused(tmp_path: Path):
    file = tmp_path / "lock"
    released = threading.Event()
    waiting = threading.Event()
    results: list[bool] = []

    def second() -> None:
        with exclusive_lock(file, "pin up", lambda _: waiting.set()):
            results.append(file.exists() and file.read_text().startswith("pin up"))

    with exclusive_lock(file, "pin down --purge", lambda _: None):
        thread = threading.Thread(target=second)
        thread.start()
        assert waiting.wait(60)
        file.unlink()
        released.set()
    thread.join()
    assert results == [True]


def home(tmp_path: Path, name: str) -> Home:
    home = Home(name, tmp_path / "state" / name)
    home.root.mkdir(parents=True, exist_ok=True)
    return home


def test_each_platform_keeps_its_slot(tmp_path: Path):
    run = tmp_path / "run"
    one, two = home(tmp_path, "one"), home(tmp_path, "two")
    assert [network_slots.claim_slot(each, None, run) for each in (one, two, one)] == [0, 1, 0]
    assert network_slots.owned_slot(two, run) == 1


def test_slots_are_restored_after_reboot(tmp_path: Path):
    run = tmp_path / "run"
    assert network_slots.claim_slot(home(tmp_path, "two"), 1, run) == 1
    assert network_slots.claim_slot(home(tmp_path, "one"), 0, run) == 0
    # The wanted slot is taken: the next free one is used.
    assert network_slots.claim_slot(home(tmp_path, "three"), 0, run) == 2


def test_slot_of_deleted_folder_is_free_after_its_network_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run = tmp_path / "run"
    gone, kept = home(tmp_path, "gone"), home(tmp_path, "kept")
    assert [network_slots.claim_slot(each, None, run) for each in (gone, kept)] == [0, 1]
    gone.root.rmdir()
    assert network_slots.claim_slot(home(tmp_path, "early"), None, run) == 2
    stopped: list[tuple[Home, int | None]] = []

    def stop_platform(home: Home, record: PlatformRecord) -> int:
        stopped.append((home, record.network_slot))
        return 0

    monkeypatch.setattr(abandoned, "stop_platform", stop_platform)
    abandoned.remove_abandoned_platforms(run)
    assert stopped == [(gone, 0)]
    assert network_slots.claim_slot(home(tmp_path, "new"), None, run) == 0


def test_last_release_removes_slot_folder(tmp_path: Path):
    run = tmp_path / "run"
    one, two = home(tmp_path, "one"), home(tmp_path, "two")
    for platform_home in (one, two):
        network_slots.claim_slot(platform_home, None, run)
    network_slots.release_slot(one, run)
    assert network_slots.owned_slot(two, run) == 1
    network_slots.release_slot(two, run)
    network_slots.release_slot(two, run)
    assert not run.exists()


def test_slot_is_claimed_before_platform_folder_exists(tmp_path: Path):
    one, two = (Home(name, tmp_path / "state" / name) for name in ("one", "two"))
    assert [network_slots.claim_slot(each, None, tmp_path / "run") for each in (one, two)] == [0, 1]


def test_rejects_platform_when_all_slots_are_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(network_slots, "SLOT_COUNT", 1)
    network_slots.claim_slot(home(tmp_path, "one"), None, tmp_path / "run")
    with pytest.raises(Refused, match="all 1 network slots"):
        network_slots.claim_slot(home(tmp_path, "two"), None, tmp_path / "run")


def test_recorded_ports_are_kept():
    chosen = ports.choose_ports({}, None)
    assert set(chosen) == {*ports.PORT_NAMES, "http"}
    assert len(set(chosen.values())) == len(chosen)
    assert ports.choose_ports(chosen, None) == chosen
    assert ports.choose_ports(chosen, 1234) == {**chosen, "http": 1234}


def test_default_http_port_of_a_platform_that_does_not_listen_yet_is_not_chosen_again(tmp_path: Path):
    first, second = home(tmp_path, "one"), home(tmp_path, "two")
    (tmp_path / "state" / "broken").mkdir()
    (tmp_path / "state" / "broken" / "record.json").write_text("no JSON")
    write_record(first, PlatformRecord(ports={"http": ports.DEFAULT_HTTP_PORT}))
    record, _ = resolve_options(second, PlatformRecord(), UpOptions(simulated=True))
    assert record.ports["http"] != ports.DEFAULT_HTTP_PORT
    kept, _ = resolve_options(first, read_record(first) or PlatformRecord(), UpOptions(simulated=True))
    assert kept.ports["http"] == ports.DEFAULT_HTTP_PORT


def test_ranges_of_all_slots_are_disjoint():
    slots = range(network_slots.SLOT_COUNT)
    others = [ip_network(f"10.{second}.{slot}.0/24") for second in (201, 202, 204) for slot in slots]
    services = [ip_network(service_range(slot, wide=wide)) for slot in slots for wide in (True, False)]
    ranges = sorted([*others, *services])
    assert not any(before.overlaps(after) for before, after in pairwise(ranges))
    assert {each.num_addresses for each in services} == {4096, 256}


def test_lock_is_tried_without_waiting(tmp_path: Path):
    file = tmp_path / "lock"
    with exclusive_lock(file, "pin up", lambda _: None), try_exclusive_lock(file, "restarting") as held:
        assert not held
    with try_exclusive_lock(file, "restarting") as held:
        assert held
        assert file.read_text() == f"restarting, pid {os.getpid()}"
        with try_exclusive_lock(file, "another") as held_twice:
            assert not held_twice

"""The supervisor restarts what ended, with a backoff, and never while a command holds the lock."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from pincompute.engine import proc, processes
from pincompute.engine.converge import Converger
from pincompute.engine.down import stop_in_order, stop_platform
from pincompute.engine.file_lock import exclusive_lock
from pincompute.engine.home import Home
from pincompute.engine.parts import NoProbe, Part
from pincompute.engine.processes import Process, find_marked
from pincompute.engine.record import PlatformRecord, read_record, write_record
from pincompute.engine.supervisor import MAX_DELAY_S, STABLE_S, SUPERVISOR, Backoff, Supervisor, read_descriptions

SLEEP = "import time; time.sleep(600)"


class FakeClock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(name="home")
def supervised_home(tmp_path: Path) -> Iterator[Home]:
    home = Home("t", tmp_path / "t")
    yield home
    processes.stop(structs.replace(process, grace_period_s=0.1) for process in find_marked(home))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def supervisor(home: Home, clock: FakeClock) -> Supervisor:
    return Supervisor(home, clock)


def part(name: str, **more: Any) -> Part:
    return Part(name, (sys.executable, "-c", SLEEP), NoProbe(), {"COLOR": "red"})._replace(**more)


def up(home: Home, *parts: Part) -> None:
    converger = Converger(home, read_record(home) or PlatformRecord(), lambda _: None)
    converger.stop_superfluous([[*parts]])
    converger.start_stage([*parts])


def record_of(home: Home) -> PlatformRecord:
    record = read_record(home)
    assert record is not None
    return record


def process_of(home: Home, name: str) -> Process:
    return record_of(home).processes[name]


def kill(home: Home, name: str) -> None:
    process = process_of(home, name)
    os.kill(process.pid, signal.SIGKILL)
    while processes.is_running(process):
        pass


def test_restarts_what_ended_as_it_was_started(home: Home, supervisor: Supervisor):
    up(home, part("a"), part("b"))
    before = record_of(home)
    assert supervisor.check() == []
    kill(home, "a")
    assert supervisor.check() == ["a"]
    after = record_of(home)
    assert after.processes["a"].fingerprint == before.processes["a"].fingerprint
    assert after.processes["b"] == before.processes["b"]
    assert after.restarts == {"a": 1}
    assert proc.environment(after.processes["a"].pid)["COLOR"] == "red"
    up(home, part("a"), part("b"))
    assert record_of(home) == after


def test_backs_off_until_a_stable_run(home: Home, supervisor: Supervisor, clock: FakeClock):
    up(home, part("a"))
    delays = []
    for _ in range(9):
        kill(home, "a")
        begin = clock.now
        while supervisor.check() == []:
            clock.now += 0.5
        delays.append(clock.now - begin)
    assert delays == [0, 1, 2, 4, 8, 16, 32, 60, 60]
    clock.now += STABLE_S + 1
    assert supervisor.check() == []
    kill(home, "a")
    assert supervisor.check() == ["a"]
    assert record_of(home).restarts == {"a": 10}


def test_delay_is_bounded_after_any_number_of_restarts():
    backoff = Backoff()
    for number in range(5000):
        backoff.restarted(number)
    assert backoff.delay_s == MAX_DELAY_S


def test_restarts_nothing_while_a_command_holds_the_lock(home: Home, supervisor: Supervisor):
    up(home, part("a"))
    with exclusive_lock(home.lock, "pin up", lambda _: None):
        kill(home, "a")
        assert supervisor.check() == []
    assert supervisor.check() == ["a"]


def test_restarts_nothing_that_a_command_stopped_meanwhile(
    home: Home, supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
):
    """Between the supervisor's first look and its lock, `pin down` runs to its end."""
    up(home, part("a"))
    kill(home, "a")
    ended_and_due = supervisor.ended_and_due

    def down_after(record: PlatformRecord) -> list[Process]:
        found = ended_and_due(record)
        write_record(home, structs.replace(record, processes={}))
        return found

    monkeypatch.setattr(supervisor, "ended_and_due", down_after)
    assert supervisor.check() == []
    assert find_marked(home) == []


def test_leaves_changed_and_unrecorded_parts_to_the_next_command(home: Home, supervisor: Supervisor):
    up(home, part("a"), part("b"))
    kill(home, "a")
    kill(home, "b")
    record = record_of(home)
    changed = structs.replace(record.processes["a"], fingerprint="another")
    write_record(home, structs.replace(record, processes={**record.processes, "a": changed}))
    unrecorded = processes.start(part("b"), home)
    assert supervisor.check() == []
    assert [each.pid for each in find_marked(home)] == [unrecorded.pid]


def test_does_not_restart_itself(home: Home, supervisor: Supervisor):
    up(home, part(SUPERVISOR))
    kill(home, SUPERVISOR)
    assert supervisor.check() == []


def test_runs_command_before_restart_and_restarts_if_it_fails(home: Home, supervisor: Supervisor):
    file = home.root / "released"
    up(home, part("a", before_restart=("touch", str(file))), part("b", before_restart=("false",)))
    assert not file.exists()
    kill(home, "a")
    kill(home, "b")
    assert sorted(supervisor.check()) == ["a", "b"]
    assert file.exists()


def test_part_that_cannot_start_does_not_keep_others_from_it(home: Home, supervisor: Supervisor, tmp_path: Path):
    program = tmp_path / "program"
    program.symlink_to("/usr/bin/sleep")
    up(home, part("a", command=(str(program), "600")), part("b"))
    program.unlink()
    kill(home, "a")
    kill(home, "b")
    supervisor.check()
    assert record_of(home).restarts == {"b": 1}
    assert processes.is_running(process_of(home, "b"))


def test_is_stopped_before_all_others(monkeypatch: pytest.MonkeyPatch):
    stopped: list[list[str]] = []

    def stop(leaving: Iterable[Process]) -> None:
        stopped.append([each.part for each in leaving])

    monkeypatch.setattr(processes, "stop", stop)
    parts = [part("desk"), part("etcd"), part(SUPERVISOR)]
    stop_in_order(Process(part=each.name, pid=1, start_ticks=1, boot="") for each in parts)
    assert stopped[0] == [SUPERVISOR]
    assert stopped[-1] == ["etcd"]


def test_running_supervisor_restarts_killed_part_and_ends_with_the_platform(home: Home):
    command = (sys.executable, "-m", "pincompute.engine.supervisor", str(home.root))
    up(home, part("a"), part(SUPERVISOR, command=command))
    log = processes.log_file(SUPERVISOR, home)
    while "supervisor started" not in log.read_text():
        assert processes.is_running(process_of(home, SUPERVISOR)), log.read_text()
    first = process_of(home, "a")
    kill(home, "a")
    while process_of(home, "a") == first:
        assert processes.is_running(process_of(home, SUPERVISOR)), log.read_text()
    while f'"part": "a", "ended_pid": {first.pid}, "pid": ' not in log.read_text():
        assert processes.is_running(process_of(home, SUPERVISOR)), log.read_text()
    with exclusive_lock(home.lock, "pin down", lambda _: None):
        assert stop_platform(home, record_of(home)) == 2
    assert find_marked(home) == []


def test_descriptions_are_private_and_complete(home: Home):
    described = part("a", reexecs=True, network_namespace="pin7", version="v1", before_restart=("true",))
    Converger(home, PlatformRecord(), lambda _: None).stop_superfluous([[described]])
    assert read_descriptions(home)["a"]._replace(probe=NoProbe()) == described
    assert (home.configs / "parts.json").stat().st_mode & 0o777 == 0o600

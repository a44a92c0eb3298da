"""The converger keeps healthy parts, starts missing ones, restarts changed ones, and stops unknown processes."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from pincompute.base.problem import Refused
from pincompute.base.reasons import FOREIGN_PROCESS, PORT_IN_USE
from pincompute.engine import part_reexec, proc, processes
from pincompute.engine.converge import Converger
from pincompute.engine.down import foreign_process_problems, stop_platform
from pincompute.engine.home import Home
from pincompute.engine.parts import NoProbe, Part, SocketProbe
from pincompute.engine.processes import find_descendants, find_marked
from pincompute.engine.record import PlatformRecord, read_record
from real_platform import free_port

SLEEP = "import time; time.sleep(600)"
SERVE = "import socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[1]))); time.sleep(600)"

REEXECS_ON_SIGHUP = """
import os, pathlib, signal, socket, sys, time
from pincompute.base.reexec import REEXEC_VARIABLE, reexec
signal.signal(signal.SIGHUP, lambda *_: reexec(pathlib.Path(os.environ[REEXEC_VARIABLE])))
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
time.sleep(600)
"""

LISTENS_AT_SECOND_START = """
import pathlib, socket, sys, time
flag, path = map(pathlib.Path, sys.argv[1:])
if flag.exists():
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
flag.touch()
time.sleep(600)
"""


LISTENS_AFTER_WORK = """
import socket, sys, time
end = time.process_time() + 1.0
while time.process_time() < end:
    pass
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
time.sleep(600)
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home("t", tmp_path / "t")
    yield home
    processes.stop(structs.replace(process, grace_period_s=0.1) for process in find_marked(home))


@pytest.fixture
def messages() -> list[str]:
    return []


def converger(home: Home, messages: list[str]) -> Converger:
    """A converger with the record of the previous command, as each command creates it."""
    return Converger(home, read_record(home) or PlatformRecord(), messages.append)


def part(name: str, *more: str) -> Part:
    return Part(name, (sys.executable, "-c", SLEEP, *more), NoProbe())


def pids(home: Home) -> dict[str, int]:
    return {each.part: each.pid for each in find_marked(home)}


def converge(home: Home, messages: list[str], *parts: Part) -> dict[str, int]:
    one = converger(home, messages)
    one.stop_superfluous([[*parts]])
    one.start_stage([*parts])
    record = read_record(home)
    assert record is not None
    recorded = {name: process.pid for name, process in record.processes.items()}
    # The kernel shows the environment of a process a moment after its program was started.
    while pids(home) != recorded:
        assert all(map(processes.is_running, record.processes.values()))
    return recorded


def kill(home: Home, name: str) -> None:
    """Kill a part and wait until its process has ended."""
    record = read_record(home)
    assert record is not None
    os.kill(record.processes[name].pid, signal.SIGKILL)
    while processes.is_running(record.processes[name]):
        pass


def test_second_run_changes_nothing(home: Home, messages: list[str]):
    first = converge(home, messages, part("a"), part("b"))
    assert converge(home, messages, part("a"), part("b")) == first
    assert messages == []


def test_killed_part_is_started_and_others_are_kept(home: Home, messages: list[str]):
    first = converge(home, messages, part("a"), part("b"))
    kill(home, "a")
    second = converge(home, messages, part("a"), part("b"))
    assert second["a"] != first["a"]
    assert second["b"] == first["b"]


def test_changed_part_is_restarted_and_unwanted_one_stopped(home: Home, messages: list[str]):
    first = converge(home, messages, part("a"), part("b"), part("c"))
    second = converge(home, messages, part("a"), part("b", "other words"))
    assert second.keys() == {"a", "b"}
    assert second["a"] == first["a"]
    assert second["b"] != first["b"]


def reexec_part_description(port: int, program: str, *more: str, reexecs: bool = True) -> Part:
    command = (sys.executable, "-c", program, str(port), *more)
    return Part("a", command, SocketProbe(address="127.0.0.1", port=port), {"MORE": " ".join(more)}, reexecs=reexecs)


def test_part_is_updated_by_reexecution(home: Home, messages: list[str]):
    port = free_port()
    first = converge(home, messages, reexec_part_description(port, REEXECS_ON_SIGHUP))
    for _ in range(2):
        assert converge(home, messages, reexec_part_description(port, REEXECS_ON_SIGHUP, "next")) == first
        assert proc.command_line(first["a"])[-1] == "next"
        assert proc.environment(first["a"])["MORE"] == "next"
    assert messages == []


def test_part_is_restarted_if_reexecution_times_out(home: Home, messages: list[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(part_reexec, "REEXEC_TIMEOUT_S", 0.2)
    port = free_port()
    deaf = REEXECS_ON_SIGHUP.replace("lambda *_: reexec(", "lambda *_: str(")
    first = converge(home, messages, reexec_part_description(port, deaf))
    second = converge(home, messages, reexec_part_description(port, deaf, "next"))
    assert second != first
    assert messages[0] == f"restarting a (pid {first['a']}): re-execution timed out"


def test_version_without_reexecution_is_restarted(home: Home, messages: list[str]):
    port = free_port()
    first = converge(home, messages, reexec_part_description(port, REEXECS_ON_SIGHUP, reexecs=False))
    assert converge(home, messages, reexec_part_description(port, REEXECS_ON_SIGHUP, "next")) != first
    assert messages == []


def test_change_of_etcd_restarts_all_parts(home: Home, messages: list[str]):
    first = converge(home, messages, part("etcd"), part("kube-apiserver"), part("desk"))
    second = converge(home, messages, part("etcd", "newer"), part("kube-apiserver"), part("desk"))
    assert second.keys() == first.keys()
    assert not set(second.values()) & set(first.values())


def test_unrecorded_process_is_stopped(home: Home, messages: list[str]):
    first = converge(home, messages, part("a"))
    unrecorded = processes.start(part("b"), home)  # as if `pin up` was killed before it wrote the record
    second = converge(home, messages, part("a"), part("b"))
    assert second["a"] == first["a"]
    assert second["b"] != unrecorded.pid


def test_part_with_failing_probe_is_restarted(home: Home, messages: list[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pincompute.engine.converge.RUNNING_SILENT_TIMEOUT_S", 0.2)
    flag, path = home.root / "flag", home.root / "socket"
    late_listener = Part("a", (sys.executable, "-c", LISTENS_AT_SECOND_START, str(flag), str(path)), NoProbe())
    first = converge(home, messages, late_listener)
    while not flag.exists():
        assert pids(home) == first
    second = converge(home, messages, late_listener._replace(probe=SocketProbe(path=path)))
    assert second != first
    assert messages == [f"restarting a (pid {first['a']}): neither answered nor used CPU for 0 s"]


def test_running_part_that_uses_cpu_is_not_restarted(home: Home, messages: list[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pincompute.engine.converge.RUNNING_SILENT_TIMEOUT_S", 0.6)
    path = home.root / "socket"
    slow = Part("a", (sys.executable, "-c", LISTENS_AFTER_WORK, str(path)), NoProbe())
    first = converge(home, messages, slow)
    assert converge(home, messages, slow._replace(probe=SocketProbe(path=path))) == first
    assert messages == []


def test_part_that_uses_cpu_for_ever_and_does_not_answer_is_reported_and_kept(
    home: Home, messages: list[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(processes, "READY_TIMEOUT_S", 0.3)
    endless = Part("a", (sys.executable, "-c", "while True: pass"), NoProbe())
    first = converge(home, messages, endless)
    with pytest.raises(Refused) as refused:
        converge(home, messages, endless._replace(probe=SocketProbe(path=home.root / "socket")))
    (problem,) = refused.value.problems
    assert "uses CPU, but was not ready after 0 s" in problem.what
    assert problem.next == f"kill {first['a']}, then run the same command again"
    assert pids(home) == first


def test_rejects_port_of_foreign_process(home: Home, messages: list[str]):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        serving = Part("desk", (sys.executable, "-c", SERVE, str(port)), SocketProbe(address="127.0.0.1", port=port))
        with pytest.raises(Refused) as refused:
            converger(home, messages).require_ports([[serving]])
    (problem,) = refused.value.problems
    assert problem.reason is PORT_IN_USE
    assert f"port {port} of desk is in use by" in problem.what
    assert f"(pid {os.getpid()})" in problem.what


def test_accepts_port_of_the_part_itself(home: Home, messages: list[str]):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    serving = Part("desk", (sys.executable, "-c", SERVE, str(port)), SocketProbe(address="127.0.0.1", port=port))
    converge(home, messages, serving)
    converger(home, messages).require_ports([[serving]])


def test_reports_foreign_process_on_recorded_pid(home: Home, messages: list[str]):
    converge(home, messages, part("a"))
    record = read_record(home)
    assert record is not None
    stolen = structs.replace(record.processes["a"], pid=os.getpid())
    (problem,) = foreign_process_problems(structs.replace(record, processes={"a": stolen}))
    assert problem.reason is FOREIGN_PROCESS
    assert problem.what == f"a was recorded as pid {os.getpid()}, which belongs to another process now"


def test_stop_ends_unrecorded_processes(home: Home, messages: list[str]):
    converge(home, messages, part("a"), part("kube-apiserver"), part("etcd"))
    assert stop_platform(home, PlatformRecord()) == 3
    assert find_marked(home) == []


def test_stop_ends_child_processes_without_marker(home: Home, messages: list[str]):
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SLEEP!r}], env={{}})"
    parent = Part("ingress", (sys.executable, "-c", program), NoProbe())
    leader = converge(home, messages, parent)["ingress"]
    record = read_record(home)
    assert record is not None
    children: list[processes.Process] = []
    # Between fork and exec the child has the environment of its parent.
    while not children or pids(home) != {"ingress": leader}:
        children = [each for each in find_descendants(home, record.processes.values()) if each.pid != leader]
    kill(home, "ingress")
    assert stop_platform(home, record) == 0
    assert not processes.is_running(children[0])


def test_foreign_process_is_no_descendant(home: Home, messages: list[str]):
    converge(home, messages, part("a"))
    record = read_record(home)
    assert record is not None
    stolen = structs.replace(record.processes["a"], pid=os.getsid(0))
    assert find_descendants(home, [stolen]) == []


def test_stopped_part_is_started_by_its_stage(home: Home, messages: list[str]):
    first = converge(home, messages, part("kwok"), part("b"))
    stopping = converger(home, messages)
    stopping.stop_part("kwok")
    stopping.stop_part("unknown")
    assert stopping.process_of("kwok") is None
    assert pids(home) == {"b": first["b"]}
    second = converge(home, messages, part("kwok"), part("b"))
    assert second["b"] == first["b"]
    assert second["kwok"] != first["kwok"]

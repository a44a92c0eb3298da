"""Parts are tended: what is healthy stays, what is missing starts, what changed starts anew, strays end."""

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
from pincompute.engine import proc, processes, renew
from pincompute.engine.down import foreigners, take_down
from pincompute.engine.home import Home
from pincompute.engine.parts import Alive, Part, Socket
from pincompute.engine.processes import heirs, marked
from pincompute.engine.record import Record, read
from pincompute.engine.tend import Tender
from real_platform import free_port

SLEEP = "import time; time.sleep(600)"
SERVE = "import socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[1]))); time.sleep(600)"

BECOME = """
import os, pathlib, signal, socket, sys, time
from pincompute.base.successor import VARIABLE, become
signal.signal(signal.SIGHUP, lambda *_: become(pathlib.Path(os.environ[VARIABLE])))
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
time.sleep(600)
"""

MUTE_AT_FIRST = """
import pathlib, socket, sys, time
flag, path = map(pathlib.Path, sys.argv[1:])
if flag.exists():
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
flag.touch()
time.sleep(600)
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home("t", tmp_path / "t")
    yield home
    processes.stop(structs.replace(process, ending=0.1) for process in marked(home))


@pytest.fixture
def said() -> list[str]:
    return []


def tender(home: Home, said: list[str]) -> Tender:
    """As each command makes it: from what the one before remembered."""
    return Tender(home, read(home) or Record(), said.append)


def part(name: str, *more: str) -> Part:
    return Part(name, (sys.executable, "-c", SLEEP, *more), Alive())


def pids(home: Home) -> dict[str, int]:
    return {each.part: each.pid for each in marked(home)}


def bring(home: Home, said: list[str], *parts: Part) -> dict[str, int]:
    one = tender(home, said)
    one.end_superfluous([[*parts]])
    one.start([*parts])
    record = read(home)
    assert record is not None
    assert {name: process.pid for name, process in record.processes.items()} == pids(home)
    return pids(home)


def kill(home: Home, name: str) -> None:
    """And wait until it is dead: the kernel takes its time."""
    record = read(home)
    assert record is not None
    os.kill(record.processes[name].pid, signal.SIGKILL)
    while processes.running(record.processes[name]):
        pass


def test_twice_is_once(home: Home, said: list[str]):
    first = bring(home, said, part("a"), part("b"))
    assert bring(home, said, part("a"), part("b")) == first
    assert said == []


def test_what_was_killed_is_started_and_the_rest_stays(home: Home, said: list[str]):
    first = bring(home, said, part("a"), part("b"))
    kill(home, "a")
    second = bring(home, said, part("a"), part("b"))
    assert second["a"] != first["a"]
    assert second["b"] == first["b"]


def test_what_is_wanted_otherwise_starts_anew_and_what_is_not_wanted_ends(home: Home, said: list[str]):
    first = bring(home, said, part("a"), part("b"), part("c"))
    second = bring(home, said, part("a"), part("b", "other words"))
    assert second.keys() == {"a", "b"}
    assert second["a"] == first["a"]
    assert second["b"] != first["b"]


def renewing(port: int, program: str, *more: str, renews: bool = True) -> Part:
    words = (sys.executable, "-c", program, str(port), *more)
    return Part("a", words, Socket(address="127.0.0.1", port=port), {"MORE": " ".join(more)}, renews=renews)


def test_one_that_must_not_be_interrupted_becomes_what_is_wanted(home: Home, said: list[str]):
    port = free_port()
    first = bring(home, said, renewing(port, BECOME))
    for _ in range(2):
        assert bring(home, said, renewing(port, BECOME, "next")) == first
        assert proc.words(first["a"])[-1] == "next"
        assert proc.variables(first["a"])["MORE"] == "next"
    assert said == []


def test_one_that_does_not_become_it_is_started_anew(home: Home, said: list[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(renew, "PATIENCE", 0.2)
    port = free_port()
    deaf = BECOME.replace("become(", "str(")
    first = bring(home, said, renewing(port, deaf))
    second = bring(home, said, renewing(port, deaf, "next"))
    assert second != first
    assert "a (pid " in said[0]
    assert "is started anew" in said[0]


def test_one_of_a_version_that_cannot_is_started_anew(home: Home, said: list[str]):
    port = free_port()
    first = bring(home, said, renewing(port, BECOME, renews=False))
    assert bring(home, said, renewing(port, BECOME, "next")) != first
    assert said == []


def test_when_the_ground_changes_all_start_anew(home: Home, said: list[str]):
    first = bring(home, said, part("etcd"), part("kube-apiserver"), part("desk"))
    second = bring(home, said, part("etcd", "newer"), part("kube-apiserver"), part("desk"))
    assert second.keys() == first.keys()
    assert not set(second.values()) & set(first.values())


def test_a_stray_of_a_start_that_was_killed_is_ended(home: Home, said: list[str]):
    first = bring(home, said, part("a"))
    stray = processes.start(part("b"), home)  # and killed before it was recorded
    second = bring(home, said, part("a"), part("b"))
    assert second["a"] == first["a"]
    assert second["b"] != stray.pid


def test_one_that_does_not_answer_is_started_anew(home: Home, said: list[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pincompute.engine.tend.PATIENCE_WITH_RUNNING", 0.2)
    flag, path = home.root / "flag", home.root / "socket"
    mute_at_first = Part("a", (sys.executable, "-c", MUTE_AT_FIRST, str(flag), str(path)), Alive())
    first = bring(home, said, mute_at_first)
    while not flag.exists():
        assert pids(home) == first
    second = bring(home, said, mute_at_first._replace(ready=Socket(path=path)))
    assert second != first
    assert said == [f"a (pid {first['a']}) does not answer; it is started anew"]


def test_a_port_that_somebody_else_has_is_refused_by_name(home: Home, said: list[str]):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        serving = Part("desk", (sys.executable, "-c", SERVE, str(port)), Socket(address="127.0.0.1", port=port))
        with pytest.raises(Refused) as refused:
            tender(home, said).require_ports([[serving]])
    (problem,) = refused.value.problems
    assert problem.reason is PORT_IN_USE
    assert f"port {port}, which desk needs, is in use by" in problem.what
    assert f"(pid {os.getpid()})" in problem.what


def test_a_port_that_the_part_itself_has_is_no_obstacle(home: Home, said: list[str]):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    serving = Part("desk", (sys.executable, "-c", SERVE, str(port)), Socket(address="127.0.0.1", port=port))
    bring(home, said, serving)
    tender(home, said).require_ports([[serving]])


def test_a_stranger_on_a_recorded_pid_is_told(home: Home, said: list[str]):
    bring(home, said, part("a"))
    record = read(home)
    assert record is not None
    stolen = structs.replace(record.processes["a"], pid=os.getpid())
    (problem,) = foreigners(structs.replace(record, processes={"a": stolen}))
    assert problem.reason is FOREIGN_PROCESS
    assert problem.what == f"a was recorded as pid {os.getpid()}, which is now somebody else's"


def test_taking_down_ends_what_the_record_does_not_know(home: Home, said: list[str]):
    bring(home, said, part("a"), part("kube-apiserver"), part("etcd"))
    assert take_down(home, Record()) == 3
    assert marked(home) == []


def test_taking_down_ends_what_a_part_left_behind_without_its_name(home: Home, said: list[str]):
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SLEEP!r}], env={{}})"
    parent = Part("ingress", (sys.executable, "-c", program), Alive())
    leader = bring(home, said, parent)["ingress"]
    record = read(home)
    assert record is not None
    children: list[processes.Process] = []
    # Before it has become its own program it has its parent's variables.
    while not children or pids(home) != {"ingress": leader}:
        children = [each for each in heirs(home, record.processes.values()) if each.pid != leader]
    kill(home, "ingress")
    assert take_down(home, record) == 0
    assert not processes.running(children[0])


def test_a_stranger_is_never_taken_for_an_heir(home: Home, said: list[str]):
    bring(home, said, part("a"))
    record = read(home)
    assert record is not None
    stolen = structs.replace(record.processes["a"], pid=os.getsid(0))
    assert heirs(home, [stolen]) == []

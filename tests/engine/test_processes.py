"""Processes outlive the command that starts them, are known again, and are ended; nobody else's is touched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from pincompute.base.problem import Refused
from pincompute.base.reasons import PART_FAILED
from pincompute.engine import proc, processes
from pincompute.engine.home import Home
from pincompute.engine.parts import Alive, Part, Ready, Socket
from pincompute.engine.processes import Standing, fingerprint, marked, running, standing

SLEEP = "import time; time.sleep(600)"
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
)
LISTEN = "import socket, sys, time; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); time.sleep(600)"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home("t", tmp_path / "t")
    home.root.mkdir()
    yield home
    processes.stop(structs.replace(process, ending=0.1) for process in marked(home))


def part(program: str, *words: str, name: str = "sleeper", ready: Ready | None = None) -> Part:
    return Part(name, (sys.executable, "-c", program, *words), ready or Alive())


def test_a_part_is_started_detached_marked_and_logged(home: Home):
    one = part("import os; print('hello', os.getsid(0) == os.getpid(), flush=True);" + SLEEP, name="greeter")
    process = processes.start(one, home)
    listening = part(LISTEN, str(home.root / "socket"), ready=Socket(path=home.root / "socket"), name="listener")
    other = processes.start(listening, home)
    processes.await_ready({"listener": (listening, other)}, home)
    assert running(process)
    assert {each.part: each.pid for each in marked(home)} == {"greeter": process.pid, "listener": other.pid}
    processes.stop([process, other])
    assert standing(process) is Standing.ENDED
    assert (home.logs / "greeter.log").read_text() == "hello True\n"
    assert (home.logs / "greeter.log").stat().st_mode & 0o777 == 0o600
    assert marked(home) == []


def test_one_that_ends_is_told_at_once_with_its_last_words(home: Home):
    program = "import sys; print('no such thing as', sys.argv[1]); sys.exit(3)"
    failing = part(program, "luck", name="failing", ready=Socket(path=home.root / "nowhere"))
    home.logs.mkdir()
    (home.logs / "failing.log").write_text("words of an earlier run\n")
    process = processes.start(failing, home)
    with pytest.raises(Refused) as refused:
        processes.await_ready({"failing": (failing, process)}, home)
    problem = refused.value.problems[0]
    assert problem.reason is PART_FAILED
    assert problem.note == "no such thing as luck"
    assert str(home.logs / "failing.log") in problem.text()


def test_one_that_stays_silent_is_given_up(home: Home):
    silent = part(SLEEP, ready=Socket(path=home.root / "nowhere"))
    process = processes.start(silent, home)
    with pytest.raises(Refused, match="was not ready after 0 s"):
        processes.await_ready({"silent": (silent, process)}, home, patience=0.1)
    assert running(process)


def test_a_program_that_is_not_there_is_a_problem(home: Home):
    with pytest.raises(Refused, match="missing cannot be started"):
        processes.start(Part("missing", (str(home.root / "no-such-program"),), Alive()), home)


def test_one_that_does_not_listen_to_sigterm_is_killed(home: Home):
    deaf = part(STUBBORN, name="deaf")._replace(ending=0.2)
    process = processes.start(deaf, home)
    assert process.ending == 0.2
    log = processes.log_file("deaf", home)
    while "deaf" not in log.read_text():
        assert running(process)
    processes.stop([process])
    assert standing(process) is Standing.ENDED


def test_one_that_ended_unasked_is_let_go_of_with_the_others(home: Home):
    process = processes.start(part(SLEEP), home)
    os.kill(process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert proc.look(process.pid) is not None
    processes.stop([])
    assert proc.look(process.pid) is None


def test_a_foreign_process_on_our_pid_is_never_touched():
    stranger = subprocess.Popen([sys.executable, "-c", SLEEP])
    try:
        ours = processes.Process(part="etcd", pid=stranger.pid, started=1, boot=proc.boot())
        assert standing(ours) is Standing.FOREIGN
        processes.stop([ours])
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_process_of_an_earlier_boot_has_ended():
    me = processes.Process(part="etcd", pid=os.getpid(), started=1, boot="another boot")
    assert standing(me) is Standing.ENDED


def test_what_a_part_starts_in_turn_is_found_but_leads_nothing(home: Home):
    parent = part(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SLEEP!r}])", name="parent")
    process = processes.start(parent, home)
    while len(marked(home)) < 2:
        assert running(process)
    assert {each.leader for each in marked(home)} == {True, False}
    os.kill(process.pid, signal.SIGKILL)
    while running(process):
        pass
    (child,) = marked(home)
    assert (child.part, child.leader) == ("parent", False)


def test_a_record_of_a_process_survives_being_written_down(home: Home):
    process = processes.start(part(SLEEP), home)
    read = msgspec.json.decode(msgspec.json.encode(process), type=processes.Process)
    assert read == process
    assert running(read)


def test_the_fingerprint_changes_with_every_word():
    one = part(SLEEP)
    assert fingerprint(one) == fingerprint(part(SLEEP))
    others = (one._replace(command=("x",)), one._replace(namespace="pin0"), one._replace(environment={"A": "b"}))
    assert len({fingerprint(each) for each in (one, *others)}) == 4

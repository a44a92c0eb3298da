"""Processes of parts are started detached, recognized by later commands, and stopped; foreign ones are not touched."""

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
from pincompute.engine.parts import NoProbe, Part, ReadinessProbe, SocketProbe
from pincompute.engine.processes import ProcessState, find_marked, fingerprint, is_running, state_of

SLEEP = "import time; time.sleep(600)"
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print('ignores SIGTERM', flush=True); time.sleep(600)"
)
LISTEN = "import socket, sys, time; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); time.sleep(600)"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home("t", tmp_path / "t")
    home.root.mkdir()
    yield home
    processes.stop(structs.replace(process, grace_period_s=0.1) for process in find_marked(home))


def part(program: str, *arguments: str, name: str = "sleeper", probe: ReadinessProbe | None = None) -> Part:
    return Part(name, (sys.executable, "-c", program, *arguments), probe or NoProbe())


def test_part_is_started_detached_with_marker_and_log(home: Home):
    one = part("import os; print('hello', os.getsid(0) == os.getpid(), flush=True);" + SLEEP, name="greeter")
    process = processes.start(one, home)
    listening = part(LISTEN, str(home.root / "socket"), probe=SocketProbe(path=home.root / "socket"), name="listener")
    other = processes.start(listening, home)
    processes.await_ready({"listener": (listening, other)}, home)
    assert is_running(process)
    assert {each.part: each.pid for each in find_marked(home)} == {"greeter": process.pid, "listener": other.pid}
    processes.stop([process, other])
    assert state_of(process) is ProcessState.ENDED
    assert (home.logs / "greeter.log").read_text() == "hello True\n"
    assert (home.logs / "greeter.log").stat().st_mode & 0o777 == 0o600
    assert find_marked(home) == []


def test_ended_process_is_reported_with_its_last_lines(home: Home):
    program = "import sys; print('no such thing as', sys.argv[1]); sys.exit(3)"
    failing = part(program, "luck", name="failing", probe=SocketProbe(path=home.root / "nowhere"))
    home.logs.mkdir()
    (home.logs / "failing.log").write_text("line of an earlier process\n")
    process = processes.start(failing, home)
    with pytest.raises(Refused) as refused:
        processes.await_ready({"failing": (failing, process)}, home)
    problem = refused.value.problems[0]
    assert problem.reason is PART_FAILED
    assert problem.note == "no such thing as luck"
    assert str(home.logs / "failing.log") in problem.text()


def test_probe_times_out(home: Home):
    silent = part(SLEEP, probe=SocketProbe(path=home.root / "nowhere"))
    process = processes.start(silent, home)
    with pytest.raises(Refused, match="neither answered nor used CPU for 0 s"):
        processes.await_ready({"silent": (silent, process)}, home, silent_timeout_s=0.1)
    assert is_running(process)


def test_missing_program_is_a_problem(home: Home):
    with pytest.raises(Refused, match="missing did not start"):
        processes.start(Part("missing", (str(home.root / "no-such-program"),), NoProbe()), home)


def test_process_that_ignores_sigterm_is_killed(home: Home):
    stubborn = part(STUBBORN, name="stubborn")._replace(grace_period_s=0.2)
    process = processes.start(stubborn, home)
    assert process.grace_period_s == 0.2
    log = processes.log_file("stubborn", home)
    while "SIGTERM" not in log.read_text():
        assert is_running(process)
    processes.stop([process])
    assert state_of(process) is ProcessState.ENDED


def test_stop_reaps_children_that_ended_on_their_own(home: Home):
    process = processes.start(part(SLEEP), home)
    os.kill(process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert proc.read_stat(process.pid) is not None
    processes.stop([])
    assert proc.read_stat(process.pid) is None


def test_foreign_process_on_recorded_pid_is_not_stopped():
    foreign = subprocess.Popen([sys.executable, "-c", SLEEP])
    try:
        ours = processes.Process(part="etcd", pid=foreign.pid, start_ticks=1, boot=proc.boot_id())
        assert state_of(ours) is ProcessState.FOREIGN
        processes.stop([ours])
        assert foreign.poll() is None
    finally:
        foreign.kill()
        foreign.wait()


def test_process_of_earlier_boot_has_ended():
    me = processes.Process(part="etcd", pid=os.getpid(), start_ticks=1, boot="another boot")
    assert state_of(me) is ProcessState.ENDED


def test_child_process_of_part_is_found_and_is_no_leader(home: Home):
    parent = part(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SLEEP!r}])", name="parent")
    process = processes.start(parent, home)
    while len(find_marked(home)) < 2:
        assert is_running(process)
    assert {each.leader for each in find_marked(home)} == {True, False}
    os.kill(process.pid, signal.SIGKILL)
    while is_running(process):
        pass
    (child,) = find_marked(home)
    assert (child.part, child.leader) == ("parent", False)


def test_detached_nginx_is_found_by_name_and_folder(home: Home, tmp_path: Path):
    """It has no marker, as it overwrites its environment, and its parent is gone."""
    program = tmp_path / "nginx"
    program.write_bytes(Path("/bin/sleep").read_bytes())
    program.chmod(0o700)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    started = [
        subprocess.Popen([each, "600"], cwd=folder, env={})
        for each, folder in ((program, home.root), (program, elsewhere), ("/bin/sleep", home.root))
    ]
    try:
        (found,) = processes.find_detached(home)
        assert (found.pid, found.leader) == (started[0].pid, False)
        processes.stop([found])
        assert started[0].wait() == -signal.SIGTERM
    finally:
        for each in started:
            each.kill()
            each.wait()


def test_process_round_trips_through_json(home: Home):
    process = processes.start(part(SLEEP), home)
    read = msgspec.json.decode(msgspec.json.encode(process), type=processes.Process)
    assert read == process
    assert is_running(read)


def test_fingerprint_changes_with_every_field():
    one = part(SLEEP)
    assert fingerprint(one) == fingerprint(part(SLEEP))
    others = (
        one._replace(command=("x",)),
        one._replace(network_namespace="pin0"),
        one._replace(environment={"A": "b"}),
    )
    assert len({fingerprint(each) for each in (one, *others)}) == 4

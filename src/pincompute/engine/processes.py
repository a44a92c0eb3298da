"""Processes that outlive the command that starts them: started detached, known again by pid and start time."""

from __future__ import annotations

import errno
import hashlib
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import Enum
from pathlib import Path

import msgspec

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import DISK_FULL, PART_FAILED
from pincompute.base.successor import VARIABLE
from pincompute.engine import proc
from pincompute.engine.home import Home
from pincompute.engine.parts import Part
from pincompute.engine.readiness import answers

MARKER = "PINCOMPUTE_HOME"
"""Every process of a platform, and every child of one, carries this variable: none can get lost."""
PART = "PINCOMPUTE_PART"

POLL = 0.05
PATIENCE = 90.0
_LAST_LINES = 8
_LINE = 300

# Those that were started by this very process must be reaped by it.
_children: dict[int, subprocess.Popen[bytes]] = {}


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """One process, so described that no other can be taken for it."""

    part: str
    pid: int
    started: int
    """The kernel's start time, in clock ticks after boot: two processes never share pid, start time and boot."""
    boot: str
    command: str = ""
    """A digest of the words it was started with: where they change, it must be started anew."""
    logged: int = 0
    """Where its own lines begin in the log file."""
    ending: float = 5.0
    """Seconds between SIGTERM and SIGKILL."""
    leader: bool = True
    """We start every part as the leader of a session of its own; what a part starts in turn is no leader."""


class Standing(Enum):
    """What stands where a process was recorded."""

    RUNNING = "running"
    ENDED = "ended"
    FOREIGN = "foreign"


def start(part: Part, home: Home) -> Process:
    """Start a part, detached from this terminal and this command."""
    inside = ("nsenter", f"--net=/run/netns/{part.namespace}") if part.namespace else ()
    try:
        log = _open_log(log_file(part.name, home))
        try:
            logged = os.fstat(log).st_size
            child = subprocess.Popen(
                [*inside, *part.command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, cwd=home.root, env=variables(part, home),
            )  # fmt: skip
        finally:
            os.close(log)
    except OSError as error:
        raise Refused(_not_started(part, error)) from error
    _children[child.pid] = child
    seen = proc.look(child.pid)
    assert seen is not None, "a child that nobody has waited for is in /proc"
    return Process(
        part=part.name, pid=child.pid, started=seen.started, boot=proc.boot(),
        command=fingerprint(part), logged=logged, ending=part.ending,
    )  # fmt: skip


def variables(part: Part, home: Home) -> dict[str, str]:
    """The environment of its process."""
    renewed = {VARIABLE: str(home.configs / f"{part.name}.successor")} if part.renews else {}
    return {**os.environ, **part.environment, **renewed, MARKER: str(home.root), PART: part.name}


def fingerprint(part: Part) -> str:
    """What must stay the same for a running process to be the part that is described."""
    words = msgspec.json.encode((part.command, sorted(part.environment.items()), part.namespace, part.version))
    return hashlib.sha256(words).hexdigest()[:16]


def log_file(part: str, home: Home) -> Path:
    return home.logs / f"{part}.log"


def standing(process: Process) -> Standing:
    child = _children.get(process.pid)
    if child is not None and child.poll() is not None:
        del _children[process.pid]
    seen = proc.look(process.pid)
    if seen is None or process.boot != proc.boot():
        return Standing.ENDED
    if seen.started != process.started:
        return Standing.FOREIGN
    return Standing.ENDED if seen.dead else Standing.RUNNING


def running(process: Process) -> bool:
    return standing(process) is Standing.RUNNING


def await_ready(started: Mapping[str, tuple[Part, Process]], home: Home, patience: float = PATIENCE) -> None:
    """Return when all answer; fail at once when one has ended, and after a while when one stays silent."""
    waiting = dict(started)
    deadline = time.monotonic() + patience
    while waiting:
        for name, (part, process) in list(waiting.items()):
            if not running(process):
                raise Refused(_failed(process, home, "ended instead of becoming ready"))
            if answers(part.ready, home.certificates):
                del waiting[name]
            elif time.monotonic() > deadline:
                raise Refused(_failed(process, home, f"was not ready after {patience:.0f} s"))
        if waiting:
            time.sleep(POLL)


def stop(processes: Iterable[Process]) -> None:
    """End them all at once: SIGTERM, and SIGKILL for each that is still there after its grace."""
    deadlines = {process: time.monotonic() + process.ending for process in processes}
    for process in deadlines:
        send(process, signal.SIGTERM)
    while deadlines := {process: end for process, end in deadlines.items() if running(process)}:
        for process, end in deadlines.items():
            if time.monotonic() > end:
                send(process, signal.SIGKILL)
        time.sleep(POLL)
    # Those of ours that ended by themselves, too, whom somebody else may have followed by another.
    for pid in [pid for pid, child in _children.items() if child.poll() is not None]:
        del _children[pid]


def marked(home: Home) -> list[Process]:
    """Every process on this machine that belongs to the platform, recorded or not."""
    found = []
    for pid in proc.pids():
        variables = proc.variables(pid)
        if variables.get(MARKER) != str(home.root) or pid == os.getpid():
            continue
        seen = proc.look(pid)
        if seen is not None and not seen.dead:
            part, leader = variables.get(PART, ""), seen.session == pid
            found.append(Process(part=part, pid=pid, started=seen.started, boot=proc.boot(), leader=leader))
    return found


def heirs(home: Home, leaders: Iterable[Process]) -> list[Process]:
    """What parts started in turn, even where it wrote over its own environment, as nginx does for its title."""
    sessions = {leader.pid: leader.part for leader in leaders if standing(leader) is not Standing.FOREIGN}
    found = []
    for pid in proc.pids():
        seen = proc.look(pid)
        # A number can be given to another session in time; that one will hardly work in our folder as well.
        if seen and not seen.dead and seen.session in sessions and proc.folder(pid) == home.root:
            part = sessions[seen.session]
            found.append(Process(part=part, pid=pid, started=seen.started, boot=proc.boot(), leader=False))
    return found


def birth(process: Process) -> datetime:
    """When it was started, by the clock on the wall."""
    return proc.moment(process.started)


def last_lines(process: Process, home: Home, count: int) -> list[str]:
    """What it said last, without what an earlier run said."""
    try:
        with log_file(process.part, home).open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            # The keeper may have cut the file since.
            begin = process.logged if process.logged <= size else 0
            log.seek(max(begin, size - (32 << 10)))
            lines = log.read().decode(errors="replace").strip().splitlines()
            return [line[:_LINE] for line in lines[-count:]]
    except OSError:
        return []


def send(process: Process, number: signal.Signals) -> None:
    """Signal this process and no other: the handle is taken first, so that its pid cannot change hands after."""
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        if running(process):
            signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        pass
    finally:
        os.close(handle)


def _open_log(file: Path) -> int:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Appending lets the keeper cut the file under the process without leaving a hole.
    return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def _not_started(part: Part, error: OSError) -> Problem:
    if error.errno == errno.ENOSPC:
        return Problem(DISK_FULL, f"{part.name} cannot be started: {error.strerror}", Where(file=str(error.filename)))
    return Problem(PART_FAILED, f"{part.name} cannot be started: {error}")


def _failed(process: Process, home: Home, how: str) -> Problem:
    said = last_lines(process, home, count=200)
    place = Where(file=str(log_file(process.part, home)))
    full = [line for line in said if "no space left on device" in line.lower()]
    if full:
        return Problem(DISK_FULL, f"{process.part} found no room on the disk", place, note=full[-1], next="free some")
    # A Go program that panics says why first, and where in a hundred lines after.
    why = [line for line in said[:-_LAST_LINES] if line.startswith("panic:")]
    note = "\n".join([*why[-1:], *said[-_LAST_LINES:]]) or "it said nothing"
    return Problem(PART_FAILED, f"{process.part} (pid {process.pid}) {how}", place, note)

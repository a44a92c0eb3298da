"""Starts, recognizes and stops the processes of a platform, which outlive the command that starts them.

A process is identified by pid, start time and boot id, so that a reused pid is never mistaken for it.
"""

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
from pincompute.base.reexec import REEXEC_VARIABLE
from pincompute.engine import proc
from pincompute.engine.home import Home
from pincompute.engine.loaded_certificates import loaded_certificates_digest
from pincompute.engine.parts import Part
from pincompute.engine.readiness import is_ready

HOME_VARIABLE = "PINCOMPUTE_HOME"
"""Environment variable of every process of a platform, inherited by child processes. By it processes are found that
are missing in the record."""
PART_VARIABLE = "PINCOMPUTE_PART"

POLL_INTERVAL_S = 0.05
SILENT_TIMEOUT_S = 90.0
"""Seconds in which a part neither answers nor uses CPU until it counts as failed."""
READY_TIMEOUT_S = 600.0
"""Seconds until a part counts as failed that uses CPU, but does not answer."""
_SHOWN_LINES = 8
_MAX_LINE_LENGTH = 300

# Children of this process, which must reap them.
_children: dict[int, subprocess.Popen[bytes]] = {}


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """Identity of one process of a part."""

    part: str
    pid: int
    start_ticks: int = msgspec.field(name="started")
    """Start time in clock ticks after boot. No two processes share pid, start time and boot id."""
    boot: str
    fingerprint: str = msgspec.field(default="", name="command")
    """Digest of the part's description; if it differs from that of the wanted part, the process is restarted."""
    log_offset: int = msgspec.field(name="logged", default=0)
    """Size of the log file at the start: lines before belong to earlier processes."""
    grace_period_s: float = msgspec.field(default=5.0, name="ending")
    """Seconds between SIGTERM and SIGKILL."""
    certificates: str = ""
    """Digest of the certificates that the process loaded at its start; if they are renewed, it is restarted."""
    leader: bool = True
    """Whether it is the leader of a session. Parts are started as leaders; their child processes are not."""


class Silent(Refused):
    """A process runs, and has neither answered nor used CPU for a long time."""


class ProcessState(Enum):
    """State of a recorded process. FOREIGN: its pid belongs to another process now."""

    RUNNING = "running"
    ENDED = "ended"
    FOREIGN = "foreign"


def start(part: Part, home: Home) -> Process:
    """Start a part in a session of its own, detached from the terminal and the command."""
    # Taken before the start: a certificate that is renewed meanwhile must not count as loaded.
    certificates = loaded_certificates_digest(part, home)
    enter_namespace = ("nsenter", f"--net=/run/netns/{part.network_namespace}") if part.network_namespace else ()
    try:
        log = _open_log(log_file(part.name, home))
        try:
            log_offset = os.fstat(log).st_size
            child = subprocess.Popen(
                [*enter_namespace, *part.command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, cwd=home.root, env=part_environment(part, home),
            )  # fmt: skip
        finally:
            os.close(log)
    except OSError as error:
        raise Refused(_not_started(part, error)) from error
    _children[child.pid] = child
    stat = proc.read_stat(child.pid)
    assert stat is not None, "a child that has not been reaped is in /proc"
    return Process(
        part=part.name, pid=child.pid, start_ticks=stat.start_ticks, boot=proc.boot_id(),
        fingerprint=fingerprint(part), log_offset=log_offset, grace_period_s=part.grace_period_s,
        certificates=certificates,
    )  # fmt: skip


def part_environment(part: Part, home: Home) -> dict[str, str]:
    """Environment of the part's process."""
    reexec = {REEXEC_VARIABLE: str(home.configs / f"{part.name}.successor")} if part.reexecs else {}
    return {**os.environ, **part.environment, **reexec, HOME_VARIABLE: str(home.root), PART_VARIABLE: part.name}


def fingerprint(part: Part) -> str:
    """Digest of everything in a part's description that a running process cannot change."""
    words = msgspec.json.encode((part.command, sorted(part.environment.items()), part.network_namespace, part.version))
    return hashlib.sha256(words).hexdigest()[:16]


def is_current(process: Process, part: Part, home: Home) -> bool:
    """Whether the process was started as described, and has loaded the certificates of now."""
    return process.fingerprint == fingerprint(part) and not has_old_certificates(process, part, home)


def has_old_certificates(process: Process, part: Part, home: Home) -> bool:
    return process.certificates not in ("", loaded_certificates_digest(part, home))


def with_certificates(process: Process, part: Part, home: Home) -> Process:
    """Record the certificates of a process that an earlier version started, without their digest.

    They are those of now, as that version restarted all parts with every renewal.
    """
    if process.certificates:
        return process
    return msgspec.structs.replace(process, certificates=loaded_certificates_digest(part, home))


def log_file(part: str, home: Home) -> Path:
    return home.logs / f"{part}.log"


def state_of(process: Process) -> ProcessState:
    child = _children.get(process.pid)
    if child is not None and child.poll() is not None:
        del _children[process.pid]
    stat = proc.read_stat(process.pid)
    if stat is None or process.boot != proc.boot_id():
        return ProcessState.ENDED
    if stat.start_ticks != process.start_ticks:
        return ProcessState.FOREIGN
    return ProcessState.ENDED if stat.is_dead else ProcessState.RUNNING


def is_running(process: Process) -> bool:
    return state_of(process) is ProcessState.RUNNING


class CpuWatch:
    """Measures for how long a process has not used the CPU. A busy machine makes a part slow, which is no failure."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._ticks = -1
        self._used_at = time.monotonic()

    def silent_s(self) -> float:
        stat = proc.read_stat(self._process.pid)
        if stat is not None and stat.cpu_ticks != self._ticks:
            self._ticks, self._used_at = stat.cpu_ticks, time.monotonic()
        return time.monotonic() - self._used_at


def await_ready(
    started: Mapping[str, tuple[Part, Process]], home: Home, silent_timeout_s: float = SILENT_TIMEOUT_S
) -> None:
    """Wait until all probes succeed.

    Raises as soon as a process ends, when one has neither answered nor used CPU for `silent_timeout_s`, or after
    READY_TIMEOUT_S.
    """
    waiting = {name: (part, process, CpuWatch(process)) for name, (part, process) in started.items()}
    deadline = time.monotonic() + READY_TIMEOUT_S
    while waiting:
        for name, (part, process, cpu) in list(waiting.items()):
            if not is_running(process):
                raise Refused(_failed(process, home, "ended before it was ready"))
            if is_ready(part.probe, home.certificates):
                del waiting[name]
            elif cpu.silent_s() > silent_timeout_s:
                raise Silent(_failed(process, home, f"neither answered nor used CPU for {silent_timeout_s:.0f} s"))
            elif time.monotonic() > deadline:
                problem = _failed(process, home, f"uses CPU, but was not ready after {READY_TIMEOUT_S:.0f} s")
                raise Refused(problem._replace(next=f"kill {process.pid}, then run the same command again"))
        if waiting:
            time.sleep(POLL_INTERVAL_S)


def stop(processes: Iterable[Process]) -> None:
    """Stop processes in parallel: SIGTERM, then SIGKILL for each that runs after its grace period."""
    deadlines = {process: time.monotonic() + process.grace_period_s for process in processes}
    for process in deadlines:
        send_signal(process, signal.SIGTERM)
    while deadlines := {process: end for process, end in deadlines.items() if is_running(process)}:
        for process, end in deadlines.items():
            if time.monotonic() > end:
                send_signal(process, signal.SIGKILL)
        time.sleep(POLL_INTERVAL_S)
    # Reap children that ended on their own, too: after that their pids may be reused.
    for pid in [pid for pid, child in _children.items() if child.poll() is not None]:
        del _children[pid]


def find_marked(home: Home) -> list[Process]:
    """Find every process of the platform on this machine by its environment, recorded or not."""
    found = []
    for pid in proc.pids():
        variables = proc.environment(pid)
        if variables.get(HOME_VARIABLE) != str(home.root) or pid == os.getpid():
            continue
        stat = proc.read_stat(pid)
        if stat is not None and not stat.is_dead:
            part, leader = variables.get(PART_VARIABLE, ""), stat.session == pid
            found.append(Process(part=part, pid=pid, start_ticks=stat.start_ticks, boot=proc.boot_id(), leader=leader))
    return found


def find_descendants(home: Home, leaders: Iterable[Process]) -> list[Process]:
    """Find processes in the sessions of parts, including those that have overwritten their environment, as nginx does
    to set its process title."""
    sessions = {leader.pid: leader.part for leader in leaders if state_of(leader) is not ProcessState.FOREIGN}
    found = []
    for pid in proc.pids():
        stat = proc.read_stat(pid)
        # A session id can be reused. Checking the working directory, too, excludes foreign sessions.
        if stat and not stat.is_dead and stat.session in sessions and proc.working_folder(pid) == home.root:
            part = sessions[stat.session]
            found.append(Process(part=part, pid=pid, start_ticks=stat.start_ticks, boot=proc.boot_id(), leader=False))
    return found


def find_detached(home: Home) -> list[Process]:
    """Find nginx, which outlives the ingress that started it and overwrites its environment.

    It is the only program of that name in the platform's folder.
    """
    found = []
    for pid in proc.pids():
        if proc.program_name(pid) != "nginx" or proc.working_folder(pid) != home.root:
            continue
        stat = proc.read_stat(pid)
        if stat is not None and not stat.is_dead:
            found.append(
                Process(part="ingress", pid=pid, start_ticks=stat.start_ticks, boot=proc.boot_id(), leader=False)
            )
    return found


def start_time(process: Process) -> datetime:
    """Start of the process in UTC."""
    return proc.wall_time(process.start_ticks)


def last_lines(process: Process, home: Home, count: int) -> list[str]:
    """Last log lines of this process, without those of earlier processes of the part."""
    try:
        with log_file(process.part, home).open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            # Log rotation may have truncated the file since.
            begin = process.log_offset if process.log_offset <= size else 0
            log.seek(max(begin, size - (32 << 10)))
            lines = log.read().decode(errors="replace").strip().splitlines()
            return [line[:_MAX_LINE_LENGTH] for line in lines[-count:]]
    except OSError:
        return []


def send_signal(process: Process, number: signal.Signals) -> None:
    """Send a signal by a pidfd, opened before the identity is checked, so that a reused pid is never signalled."""
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        if is_running(process):
            signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        pass
    finally:
        os.close(handle)


def _open_log(file: Path) -> int:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # In append mode the log can be truncated during rotation without leaving a hole.
    return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def _not_started(part: Part, error: OSError) -> Problem:
    if error.errno == errno.ENOSPC:
        return Problem(DISK_FULL, f"{part.name} did not start: {error.strerror}", Where(file=str(error.filename)))
    return Problem(PART_FAILED, f"{part.name} did not start: {error}")


def _failed(process: Process, home: Home, how: str) -> Problem:
    lines = last_lines(process, home, count=200)
    place = Where(file=str(log_file(process.part, home)))
    full = [line for line in lines if "no space left on device" in line.lower()]
    if full:
        return Problem(DISK_FULL, f"{process.part} failed: disk full", place, note=full[-1], next="free disk space")
    # A Go program that panics prints the reason first, and then up to a hundred lines of stack trace.
    panics = [line for line in lines[:-_SHOWN_LINES] if line.startswith("panic:")]
    note = "\n".join([*panics[-1:], *lines[-_SHOWN_LINES:]]) or "its log is empty"
    return Problem(PART_FAILED, f"{process.part} (pid {process.pid}) {how}", place, note)

"""Reads process information from /proc. Every function tolerates that the process ends meanwhile."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")


class ProcStat(NamedTuple):
    is_dead: bool
    """Zombie: ended, but not yet reaped by its parent."""
    session: int
    start_ticks: int
    """Start time in clock ticks after boot."""
    cpu_ticks: int = 0
    """CPU time in user and kernel mode, in clock ticks."""


def read_stat(pid: int) -> ProcStat | None:
    try:
        line = (PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    # The second field is the program's name in parentheses; the name may contain spaces and parentheses.
    fields = line.rpartition(")")[2].split()
    return ProcStat(
        is_dead=fields[0] in "ZX",
        session=int(fields[3]),
        start_ticks=int(fields[19]),
        cpu_ticks=int(fields[11]) + int(fields[12]),
    )


def pids() -> Iterator[int]:
    return (int(folder.name) for folder in PROC.iterdir() if folder.name.isdigit())


def environment(pid: int) -> dict[str, str]:
    """Environment at the start of the process; empty without the permission to read it."""
    with suppress(OSError):
        entries = os.fsdecode((PROC / str(pid) / "environ").read_bytes()).split("\0")
        return dict(entry.split("=", 1) for entry in entries if "=" in entry)
    return {}


def command_line(pid: int) -> list[str]:
    """Program and arguments; empty if the process has ended."""
    with suppress(OSError):
        return os.fsdecode((PROC / str(pid) / "cmdline").read_bytes()).split("\0")[:-1]
    return []


def working_folder(pid: int) -> Path | None:
    """Current working directory of the process."""
    with suppress(OSError):
        return (PROC / str(pid) / "cwd").readlink()
    return None


def program_name(pid: int) -> str:
    with suppress(OSError):
        return (PROC / str(pid) / "comm").read_text().strip()
    return "a process that has just ended"


def memory_bytes(pid: int) -> int:
    """Proportional set size where the kernel reports it, which divides shared pages; else the resident set size."""
    for file, field in (("smaps_rollup", "Pss:"), ("status", "VmRSS:")):
        with suppress(OSError):
            for line in (PROC / str(pid) / file).read_text().splitlines():
                if line.startswith(field):
                    return int(line.split()[1]) * 1024
    return 0


def wall_time(ticks: int) -> datetime:
    """Convert clock ticks after boot to UTC."""
    booted = datetime.now(UTC) - timedelta(seconds=time.clock_gettime(time.CLOCK_BOOTTIME))
    return booted + timedelta(seconds=ticks / os.sysconf("SC_CLK_TCK"))


def boot_id() -> str:
    """Id of this boot of the machine; recorded pids and start times are valid within one boot only."""
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def listener_pid(port: int) -> int | None:
    """Pid of the process that listens on a TCP port of this network namespace, None if unknown."""
    inodes = {fields[9] for fields in _listening_sockets() if int(fields[1].rpartition(":")[2], 16) == port}
    sockets = {f"socket:[{inode}]" for inode in inodes}
    for pid in pids():
        with suppress(OSError):
            if any(_link_target(handle) in sockets for handle in (PROC / str(pid) / "fd").iterdir()):
                return pid
    return None


def _link_target(handle: Path) -> str:
    with suppress(OSError):
        return str(handle.readlink())
    return ""


def _listening_sockets() -> list[list[str]]:
    """Fields of the sockets in state LISTEN."""
    tables = [PROC / "net/tcp", PROC / "net/tcp6"]
    lines = [line.split() for table in tables if table.exists() for line in table.read_text().splitlines()[1:]]
    return [fields for fields in lines if fields[3] == "0A"]

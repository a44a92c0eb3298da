"""What the kernel tells of processes, read from /proc. Any of them may end while it is looked at."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")


class Look(NamedTuple):
    dead: bool
    """It has ended and only waits for its parent to take notice."""
    session: int
    started: int
    """In clock ticks after boot."""


def look(pid: int) -> Look | None:
    try:
        line = (PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    # The second field is the program's name in parentheses, which may hold spaces and parentheses itself.
    fields = line.rpartition(")")[2].split()
    return Look(dead=fields[0] in "ZX", session=int(fields[3]), started=int(fields[19]))


def pids() -> Iterator[int]:
    return (int(folder.name) for folder in PROC.iterdir() if folder.name.isdigit())


def variables(pid: int) -> dict[str, str]:
    """Its environment, as far as we may read it."""
    with suppress(OSError):
        entries = os.fsdecode((PROC / str(pid) / "environ").read_bytes()).split("\0")
        return dict(entry.split("=", 1) for entry in entries if "=" in entry)
    return {}


def words(pid: int) -> list[str]:
    """Those it was started with."""
    with suppress(OSError):
        return os.fsdecode((PROC / str(pid) / "cmdline").read_bytes()).split("\0")[:-1]
    return []


def folder(pid: int) -> Path | None:
    """The one it works in."""
    with suppress(OSError):
        return (PROC / str(pid) / "cwd").readlink()
    return None


def name(pid: int) -> str:
    with suppress(OSError):
        return (PROC / str(pid) / "comm").read_text().strip()
    return "a program that has just ended"


def memory(pid: int) -> int:
    """Bytes: its fair share of what it has in common with others, where the kernel tells; else all that it touches."""
    for file, field in (("smaps_rollup", "Pss:"), ("status", "VmRSS:")):
        with suppress(OSError):
            for line in (PROC / str(pid) / file).read_text().splitlines():
                if line.startswith(field):
                    return int(line.split()[1]) * 1024
    return 0


def moment(ticks: int) -> datetime:
    """A start time by the clock on the wall."""
    booted = datetime.now(UTC) - timedelta(seconds=time.clock_gettime(time.CLOCK_BOOTTIME))
    return booted + timedelta(seconds=ticks / os.sysconf("SC_CLK_TCK"))


def boot() -> str:
    """This boot of the machine: a pid and start time of an earlier one mean nothing."""
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def listener(port: int) -> int | None:
    """The pid of who listens on a TCP port of this network namespace, as far as we may know it."""
    inodes = {fields[9] for fields in _listening() if int(fields[1].rpartition(":")[2], 16) == port}
    sockets = {f"socket:[{inode}]" for inode in inodes}
    for pid in pids():
        with suppress(OSError):
            if any(_target(handle) in sockets for handle in (PROC / str(pid) / "fd").iterdir()):
                return pid
    return None


def _target(handle: Path) -> str:
    with suppress(OSError):
        return str(handle.readlink())
    return ""


def _listening() -> list[list[str]]:
    """The lines of the kernel's tables whose state says LISTEN, as fields."""
    tables = [PROC / "net/tcp", PROC / "net/tcp6"]
    lines = [line.split() for table in tables if table.exists() for line in table.read_text().splitlines()[1:]]
    return [fields for fields in lines if fields[3] == "0A"]

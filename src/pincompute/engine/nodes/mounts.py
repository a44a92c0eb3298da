"""What is mounted where, and how it is let go."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from pincompute.engine.tools import run, succeeds

_TABLE = Path("/proc/self/mountinfo")


class Mount(NamedTuple):
    point: Path
    kind: str
    """The file system's type, such as `overlay`."""
    options: frozenset[str]
    """Those of the file system itself; a cgroup hierarchy names its controllers here."""


def mounts() -> list[Mount]:
    """In the order in which they were made."""
    return parse(_TABLE.read_text())


def parse(table: str) -> list[Mount]:
    """The lines of /proc/self/mountinfo, see proc_pid_mountinfo(5)."""
    found = []
    for line in table.splitlines():
        # The optional fields before the dash are as many as they please.
        fixed, _, rest = line.partition(" - ")
        kind, _source, options = rest.split(" ", 2)
        found.append(Mount(Path(_unescape(fixed.split()[4])), kind, frozenset(options.split(","))))
    return found


def beneath(folder: Path, table: list[Mount]) -> list[Path]:
    """The mount points at and under a folder, in the order in which they must be let go: the latest first."""
    return [mount.point for mount in reversed(table) if mount.point.is_relative_to(folder)]


def release(folder: Path) -> None:
    """Unmount everything at and under a folder, by whatever link it is named."""
    folder = folder.resolve()
    points = beneath(folder, mounts())
    if points:
        succeeds(["umount", *points])
    # One that is still in use leaves the tree now and ends with its last user.
    stubborn = beneath(folder, mounts())
    if stubborn:
        run(["umount", "--lazy", *stubborn])


def _unescape(path: str) -> str:
    """A space, tab, newline or backslash stands there as its octal number."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), path)

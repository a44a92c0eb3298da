"""Reads the mount table and unmounts folders."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from pincompute.engine.system_commands import run, succeeds

_TABLE = Path("/proc/self/mountinfo")


class Mount(NamedTuple):
    point: Path
    kind: str
    """Type of the file system, such as `overlay`."""
    options: frozenset[str]
    """Options of the superblock; those of a cgroup hierarchy contain its controllers."""


def mounts() -> list[Mount]:
    """All mounts in the order in which they were mounted."""
    return parse_mountinfo(_TABLE.read_text())


def parse_mountinfo(table: str) -> list[Mount]:
    """Parse /proc/self/mountinfo, see proc_pid_mountinfo(5)."""
    found = []
    for line in table.splitlines():
        # A variable number of optional fields precedes the dash.
        fixed, _, rest = line.partition(" - ")
        kind, _source, options = rest.split(" ", 2)
        found.append(Mount(Path(_unescape(fixed.split()[4])), kind, frozenset(options.split(","))))
    return found


def mount_points_under(folder: Path, table: list[Mount]) -> list[Path]:
    """Mount points at and under a folder, latest first, which is the order of unmounting."""
    return [mount.point for mount in reversed(table) if mount.point.is_relative_to(folder)]


def unmount_all(folder: Path) -> None:
    """Unmount everything at and under a folder; symbolic links are resolved."""
    folder = folder.resolve()
    points = mount_points_under(folder, mounts())
    if points:
        succeeds(["umount", *points])
    # Mounts in use are detached now and unmounted by the kernel after their last use.
    remaining = mount_points_under(folder, mounts())
    if remaining:
        run(["umount", "--lazy", *remaining])


def _unescape(path: str) -> str:
    """Decode space, tab, newline and backslash, which are octal escapes in mountinfo."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), path)

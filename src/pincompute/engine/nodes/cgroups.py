"""Control groups: one tree a platform in every hierarchy, so that nothing it runs can hide from its end."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import PART_FAILED
from pincompute.engine.nodes.mounts import Mount, mounts

NEEDED = frozenset({"cpu", "cpuset", "memory", "pids"})
"""The kubelet starts no pod without these."""

CONTAINERD = "containerd"
"""The child group of containerd itself and of the shims between it and the containers."""

_CONTROLLERS = NEEDED | {"cpuacct", "blkio", "devices", "freezer", "hugetlb", "io", "net_cls", "perf_event"}
_PATIENCE = 10.0
_POLL = 0.02


class Hierarchy(NamedTuple):
    """Version 1 mounts one a controller or two, version 2 a single one for all."""

    root: Path
    controllers: frozenset[str]
    unified: bool = False


def hierarchies(table: list[Mount]) -> list[Hierarchy]:
    both = any(mount.kind == "cgroup" for mount in table)
    found = []
    for mount in table:
        if mount.kind == "cgroup":
            found.append(Hierarchy(mount.point, mount.options & _CONTROLLERS))
        elif mount.kind == "cgroup2":
            # Beside version 1 it limits nothing and only keeps count.
            found.append(Hierarchy(mount.point, frozenset() if both else _offered(mount.point), unified=True))
    return found


def make(name: str) -> None:
    """The group `/name` in every hierarchy, ready to have children."""
    for hierarchy in hierarchies(mounts()):
        group = hierarchy.root / name
        if hierarchy.unified:
            _hand_down(hierarchy.root, hierarchy.controllers)
        group.mkdir(exist_ok=True)
        if hierarchy.unified:
            _hand_down(group, hierarchy.controllers)
        elif "cpuset" in hierarchy.controllers:
            # A new cpuset of version 1 is empty, and no process may enter it.
            for file in ("cpuset.cpus", "cpuset.mems"):
                (group / file).write_text((hierarchy.root / file).read_text())


def exists(name: str) -> bool:
    return any((hierarchy.root / name).is_dir() for hierarchy in hierarchies(mounts()))


def members(name: str) -> set[int]:
    """Every process in the group or one beneath it, in any hierarchy."""
    return {pid for group in _groups(name) for pid in _pids(group)}


def remove(name: str) -> None:
    """End every process in the group, then the group itself with all beneath it."""
    deadline = time.monotonic() + _PATIENCE
    while groups := _groups(name):
        # Again and again: one that was just forking has a child that no list knew.
        for pid in members(name):
            _kill(pid)
        left = [group for group in groups if not _removed(group)]
        if left and time.monotonic() > deadline:
            raise Refused(_stubborn(name, left))
        time.sleep(_POLL if left else 0)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _removed(group: Path) -> bool:
    """The kernel keeps a group as long as a process in it is not quite gone."""
    try:
        group.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _stubborn(name: str, left: list[Path]) -> Problem:
    pids = ", ".join(str(pid) for pid in sorted(members(name))) or "none that it lists"
    return Problem(
        PART_FAILED,
        f"control group {left[0]} could not be removed within {_PATIENCE:.0f} s",
        note=f"processes that did not end: {pids}",
        next="pin down",
    )


def _groups(name: str) -> list[Path]:
    """Children before parents, as they must be removed."""
    assert name, "the root of all groups belongs to everyone"
    tops = [hierarchy.root / name for hierarchy in hierarchies(mounts())]
    return [Path(folder) for top in tops for folder, _, _ in os.walk(top, topdown=False)]


def _pids(group: Path) -> list[int]:
    try:
        return [int(pid) for pid in (group / "cgroup.procs").read_text().split()]
    except OSError:  # the group went away meanwhile
        return []


def _offered(root: Path) -> frozenset[str]:
    try:
        return frozenset((root / "cgroup.controllers").read_text().split())
    except OSError:
        return frozenset()


def _hand_down(group: Path, controllers: frozenset[str]) -> None:
    """Let the children of a group of version 2 use these controllers."""
    if controllers:
        words = " ".join(f"+{controller}" for controller in sorted(controllers))
        (group / "cgroup.subtree_control").write_text(words)

"""Control groups: one tree for each platform in every hierarchy, by which all of its processes can be killed."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import PART_FAILED
from pincompute.engine.nodes.mounts import Mount, mounts

REQUIRED_CONTROLLERS = frozenset({"cpu", "cpuset", "memory", "pids"})
"""Controllers without which the kubelet starts no pod."""

CONTAINERD_GROUP = "containerd"
"""Child group of containerd and its shims."""

_CONTROLLERS = REQUIRED_CONTROLLERS | {
    "cpuacct",
    "blkio",
    "devices",
    "freezer",
    "hugetlb",
    "io",
    "net_cls",
    "perf_event",
}
_REMOVE_TIMEOUT_S = 10.0
_POLL_INTERVAL_S = 0.02


class Hierarchy(NamedTuple):
    """One mounted hierarchy. Version 1 has one for each controller or pair of controllers, version 2 a single one."""

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
            # In hybrid mode the v2 hierarchy has no controllers.
            found.append(
                Hierarchy(mount.point, frozenset() if both else _available_controllers(mount.point), unified=True)
            )
    return found


def create(name: str) -> None:
    """Create the group `/name` in every hierarchy and enable its controllers for children."""
    for hierarchy in hierarchies(mounts()):
        group = hierarchy.root / name
        if hierarchy.unified:
            _enable_for_children(hierarchy.root, hierarchy.controllers)
        group.mkdir(exist_ok=True)
        if hierarchy.unified:
            _enable_for_children(group, hierarchy.controllers)
        elif "cpuset" in hierarchy.controllers:
            # A new v1 cpuset is empty, and no process can be added to it.
            for file in ("cpuset.cpus", "cpuset.mems"):
                (group / file).write_text((hierarchy.root / file).read_text())


def exists(name: str) -> bool:
    return any((hierarchy.root / name).is_dir() for hierarchy in hierarchies(mounts()))


def members(name: str) -> set[int]:
    """Pids of all processes in the group and its descendants, in any hierarchy."""
    return {pid for group in _groups(name) for pid in _pids(group)}


def kill_and_remove(name: str) -> None:
    """Kill every process in the group, then remove the group and its descendants."""
    deadline = time.monotonic() + _REMOVE_TIMEOUT_S
    while groups := _groups(name):
        # Repeated, because a process that was forking has a child that was not listed.
        for pid in members(name):
            _kill(pid)
        left = [group for group in groups if not _try_remove(group)]
        if left and time.monotonic() > deadline:
            raise Refused(_not_removed(name, left))
        time.sleep(_POLL_INTERVAL_S if left else 0)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _try_remove(group: Path) -> bool:
    """Remove a group; False while the kernel still has a dying process in it."""
    try:
        group.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _not_removed(name: str, left: list[Path]) -> Problem:
    pids = ", ".join(str(pid) for pid in sorted(members(name))) or "none are listed"
    return Problem(
        PART_FAILED,
        f"control group {left[0]} was not removed within {_REMOVE_TIMEOUT_S:.0f} s",
        note=f"processes still running: {pids}",
        next="pin down",
    )


def _groups(name: str) -> list[Path]:
    """The group and its descendants, children before parents, which is the order of removal."""
    assert name, "an empty name would select the root group"
    tops = [hierarchy.root / name for hierarchy in hierarchies(mounts())]
    return [Path(folder) for top in tops for folder, _, _ in os.walk(top, topdown=False)]


def _pids(group: Path) -> list[int]:
    try:
        return [int(pid) for pid in (group / "cgroup.procs").read_text().split()]
    except OSError:  # the group was removed meanwhile
        return []


def _available_controllers(root: Path) -> frozenset[str]:
    try:
        return frozenset((root / "cgroup.controllers").read_text().split())
    except OSError:
        return frozenset()


def _enable_for_children(group: Path, controllers: frozenset[str]) -> None:
    """Enable controllers for the children of a v2 group."""
    if controllers:
        words = " ".join(f"+{controller}" for controller in sorted(controllers))
        (group / "cgroup.subtree_control").write_text(words)

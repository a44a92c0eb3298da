"""Control group of one contender: its share of a core, and the processor time of all of its processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pincompute.engine.nodes import cgroups
from pincompute.engine.nodes.mounts import mounts

_PERIOD_US = 100_000
"""The period that a kubelet uses for the limit of a container."""


class ContenderGroup:
    """A group in the hierarchies of `cpu` and of its accounting, which version 2 unites."""

    def __init__(self, name: str) -> None:
        found = cgroups.hierarchies(mounts())
        self._folders = {
            controller: each.root / name for each in found for controller in each.controllers & {"cpu", "cpuacct"}
        }

    def add(self, pid: int) -> None:
        for folder in set(self._folders.values()):
            (folder / "cgroup.procs").write_text(str(pid))

    def limit_cores(self, cores: float) -> None:
        quota = str(int(cores * _PERIOD_US))
        unified, former = (self._folders["cpu"] / name for name in ("cpu.max", "cpu.cfs_quota_us"))
        if unified.exists():
            unified.write_text(f"{quota} {_PERIOD_US}")
        else:
            former.write_text(quota)

    def used_s(self) -> float:
        """Processor time of all processes that ever were in the group."""
        if folder := self._folders.get("cpuacct"):
            return int((folder / "cpuacct.usage").read_text()) / 1e9
        return read_usage(self._folders["cpu"] / "cpu.stat")


def read_usage(file: Path) -> float:
    """Seconds of `usage_usec` in a `cpu.stat` of version 2."""
    fields = dict(line.split() for line in file.read_text().splitlines())
    return int(fields["usage_usec"]) / 1e6


@contextmanager
def contender_group() -> Iterator[ContenderGroup]:
    """Every process that is left in the group is killed at the end."""
    name = f"pincompute-bench-{os.getpid()}"
    cgroups.create(name)
    try:
        yield ContenderGroup(name)
    finally:
        cgroups.kill_and_remove(name)

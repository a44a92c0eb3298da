"""Checks whether this machine can run a real node."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from pincompute.base.problem import Problem
from pincompute.base.reasons import NODE_IMPOSSIBLE
from pincompute.engine import debian
from pincompute.engine.nodes import cgroups
from pincompute.engine.nodes.mounts import mounts
from pincompute.engine.system_commands import COMMAND_ENVIRONMENT, SYSTEM_PATH

PROGRAMS = (
    "containerd", "containerd-shim-runc-v2", "ctr", "runc", "host-local", "loopback", "portmap", "ptp", "iptables",
    "ip", "nft",
)  # fmt: skip
"""Programs of a real node, besides those that build.py builds."""

_CAP_SYS_RESOURCE = 24

_TRIALS = {
    "a network namespace": ("true",),
    "a pair of network devices (veth)": ("ip", "link", "add", "trial", "type", "veth"),
    "address translation by iptables": ("iptables", "--table", "nat", "--list-rules"),
    "a table of nftables": ("nft", "add", "table", "inet", "trial"),
}
"""Operations that are tried in a temporary network namespace."""


class Machine(NamedTuple):
    """Capabilities of this machine."""

    system: str
    root: bool
    controllers: frozenset[str]
    """Usable cgroup controllers."""
    missing_packages: tuple[str, ...]
    """Debian packages that are not installed."""
    failed_trials: dict[str, str]
    """Trials that failed, with the error message."""
    overlay: bool = True
    may_lower_oom_score: bool = True


def inspect_machine() -> Machine:
    """Inspect the machine; trials leave no trace."""
    root = os.geteuid() == 0
    packages = tuple(debian.missing_packages(PROGRAMS))
    return Machine(
        system=platform.system(),
        root=root,
        controllers=_controllers(root=root),
        missing_packages=packages,
        failed_trials=_run_trials() if root and not packages else {},
        overlay="\toverlay\n" in Path("/proc/filesystems").read_text(),
        may_lower_oom_score=_has_capability(_CAP_SYS_RESOURCE),
    )


def obstacles(machine: Machine) -> tuple[Problem, ...]:
    """All reasons why this machine cannot run a real node."""
    if machine.system != "Linux":
        return (Problem(NODE_IMPOSSIBLE, f"containers need Linux; this machine runs {machine.system}"),)
    found = []
    if not machine.root:
        found.append(Problem(NODE_IMPOSSIBLE, "a real node needs root", next="sudo pin up"))
    if absent := cgroups.REQUIRED_CONTROLLERS - machine.controllers:
        controllers = ", ".join(sorted(absent))
        found.append(
            Problem(
                NODE_IMPOSSIBLE,
                f"cgroup controllers not available: {controllers}",
                note="they are disabled in the kernel, or not delegated to this container or VM",
            )
        )
    if machine.missing_packages:
        what = f"Debian packages not installed: {', '.join(machine.missing_packages)}"
        found.append(Problem(NODE_IMPOSSIBLE, what, next="pin up --install"))
    found += [
        Problem(NODE_IMPOSSIBLE, f"cannot create {what} on this machine", note=error)
        for what, error in machine.failed_trials.items()
    ]
    return tuple(found)


def _controllers(*, root: bool) -> frozenset[str]:
    """Controllers of writable hierarchies: inside a container, they are often mounted read-only."""
    usable = [each for each in cgroups.hierarchies(mounts()) if not root or os.access(each.root, os.W_OK)]
    return frozenset().union(*(each.controllers for each in usable))


def _run_trials() -> dict[str, str]:
    if shutil.which("unshare", path=SYSTEM_PATH) is None:
        return {"a network namespace": "the program `unshare` is missing"}
    failures = {}
    for what, command in _TRIALS.items():
        done = subprocess.run(
            ["unshare", "--net", *command], check=False, capture_output=True, text=True, env=COMMAND_ENVIRONMENT
        )
        if done.returncode != 0:
            failures[what] = done.stderr.strip()
        if command == ("true",) and failures:
            break  # the other trials need a network namespace
    return failures


def _has_capability(capability: int) -> bool:
    status = Path("/proc/self/status").read_text()
    effective = next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(effective, 16) >> capability & 1)

"""What this machine can do, as a value, and what stands in the way of a real node on it."""

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
from pincompute.engine.tools import PATH, VARIABLES

PROGRAMS = (
    "containerd", "containerd-shim-runc-v2", "ctr", "runc", "host-local", "loopback", "portmap", "iptables", "ip",
)  # fmt: skip
"""What a real node is made of, beside what we build ourselves."""

_CAP_SYS_RESOURCE = 24

_TRIALS = {
    "a network namespace": ("true",),
    "a pair of network devices (veth)": ("ip", "link", "add", "trial", "type", "veth"),
    "a bridge": ("ip", "link", "add", "trial", "type", "bridge"),
    "address translation by iptables": ("iptables", "--table", "nat", "--list-rules"),
}
"""Each is tried in a network namespace that ends with the trial."""


class Machine(NamedTuple):
    system: str
    root: bool
    controllers: frozenset[str]
    """The control-group controllers that a pod can be limited by."""
    packages: tuple[str, ...]
    """Debian's packages that are not there."""
    failures: dict[str, str]
    """What could not be made in a network namespace, and what the system said."""
    overlay: bool = True
    may_lower_oom_score: bool = True


def look() -> Machine:
    """Nothing that is tried here leaves a trace."""
    root = os.geteuid() == 0
    packages = tuple(debian.missing(PROGRAMS))
    return Machine(
        system=platform.system(),
        root=root,
        controllers=_controllers(root=root),
        packages=packages,
        failures=_try() if root and not packages else {},
        overlay="\toverlay\n" in Path("/proc/filesystems").read_text(),
        may_lower_oom_score=_capable(_CAP_SYS_RESOURCE),
    )


def obstacles(machine: Machine) -> tuple[Problem, ...]:
    """All of them at once, so that nobody has to come back for the next."""
    if machine.system != "Linux":
        return (Problem(NODE_IMPOSSIBLE, f"containers need Linux, and this is {machine.system}"),)
    found = []
    if not machine.root:
        found.append(Problem(NODE_IMPOSSIBLE, "a real node needs root, and you are not", next="sudo pin up"))
    if absent := cgroups.NEEDED - machine.controllers:
        words = ", ".join(sorted(absent))
        found.append(
            Problem(
                NODE_IMPOSSIBLE,
                f"no control groups here for {words}",
                note="the kernel, or what this machine runs in, keeps them back",
            )
        )
    if machine.packages:
        what = f"not on this machine: {', '.join(machine.packages)}"
        found.append(Problem(NODE_IMPOSSIBLE, what, next="pin up --install"))
    found += [
        Problem(NODE_IMPOSSIBLE, f"this machine does not let us make {what}", note=said)
        for what, said in machine.failures.items()
    ]
    return tuple(found)


def _controllers(*, root: bool) -> frozenset[str]:
    """Those that can be used: inside a container they are often there to be looked at only."""
    usable = [each for each in cgroups.hierarchies(mounts()) if not root or os.access(each.root, os.W_OK)]
    return frozenset().union(*(each.controllers for each in usable))


def _try() -> dict[str, str]:
    if shutil.which("unshare", path=PATH) is None:
        return {"a network namespace": "there is no `unshare`"}
    failures = {}
    for what, command in _TRIALS.items():
        done = subprocess.run(
            ["unshare", "--net", *command], check=False, capture_output=True, text=True, env=VARIABLES
        )
        if done.returncode != 0:
            failures[what] = done.stderr.strip()
        if command == ("true",) and failures:
            break  # the others are tried inside one
    return failures


def _capable(capability: int) -> bool:
    status = Path("/proc/self/status").read_text()
    effective = next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(effective, 16) >> capability & 1)

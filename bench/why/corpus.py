"""The corpus: faults and healthy states as YAML, and the coin that splits the faults in halves."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import yaml

FAULTS_FOLDER = Path(__file__).parent / "faults"
HEALTHY_FILE = Path(__file__).parent / "healthy.yaml"
BUILD, SCORE = "build", "score"
HALVES = (BUILD, SCORE)
"""Faults with answers that may be read while `why` is improved, and faults that only score it."""


class _Data(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class Event(_Data, frozen=True):
    """An event about the pod."""

    reason: str
    message: str
    type: str = "Warning"


class PodState(_Data, frozen=True):
    """State of pods that the scripted kubelet reports: without any field they are ready, or have succeeded."""

    waiting: str = ""
    """Reason for which the container waits."""
    exit: int | None = None
    because: str = ""
    """Reason of the termination, or of a failed pod."""
    times: int = 1
    """Exits so far; from the second one on, the kubelet backs off, except where the program is `running` again."""
    running: bool = False
    working: bool = False
    """The program of a batch is ready and goes on."""
    unready: int = 0
    """Seconds for which the program has been running without being ready."""
    creating: int = 0
    """Seconds for which the containers have been created."""
    failed: str = ""
    """Reason of a pod that failed as a whole."""
    silent: bool = False
    """The kubelet does not act on the pod."""
    message: str = ""
    container: str = ""
    """The container that has the state; the first one by default."""
    init: bool = False
    """The state is that of the first init container."""
    only: str = ""
    """Regular expression that is found in the names of the affected pods."""
    conditions: list[dict[str, str]] = []
    event: Event | None = None
    needs_memory: str = ""
    """The least memory limit that ends the state."""
    until: str = ""
    """Object that ends the state once it exists, such as Secret/database. By default every change of the pod does."""


class NodeState(_Data, frozen=True):
    """A node of one fault. It has the label `bench` with the name of the fault, by which its pods select it."""

    ready: str = "True"
    message: str = "kubelet is posting ready status"
    labels: dict[str, str] = {}
    taints: list[dict[str, str]] = []
    capacity: dict[str, str] = {}
    unschedulable: bool = False
    pressure: str = ""
    """Another condition that is true, such as DiskPressure."""


class Step(_Data, frozen=True):
    """A change of a healthy workload; each step has one field. `$NAME` is the name of the workload."""

    edit: dict[str, Any] | None = None
    patch: str = ""
    """Object that another client patches, such as Deployment/$NAME."""
    to: dict[str, Any] = {}
    create: dict[str, Any] | None = None
    delete: str = ""
    pod: PodState | None = None
    node: NodeState | None = None
    change: dict[str, Any] | None = None
    """A command of the user, such as {scale: 3}."""


class Script(_Data, frozen=True, kw_only=True):
    """Objects that are set up, and steps that follow: by itself a healthy or busy state, which no answer may report."""

    kind: str = "service"
    file: dict[str, Any] = {}
    """Fields of the workload's file that differ from those of a healthy one; null removes a field."""
    pods: dict[str, Any] = {}
    """Fields of its pod's spec."""
    objects: list[dict[str, Any]] = []
    """Objects that exist before."""
    nodes: list[NodeState] = []
    pod: PodState | None = None
    """The state that the kubelet reports. The pods then run on a scripted node."""
    then: list[Step] = []
    """Steps on the healthy workload."""
    project: dict[str, Any] | None = None
    """Spec of a project of its own."""


class Fault(Script, frozen=True, kw_only=True):
    reason: str
    """The one accepted reason."""
    source: str
    """Where the fault is described: a key of `sources`, or an address."""
    tells: str
    """Text that the answer must contain: the cause by its name or number."""
    stops: str = ""
    """Part of the platform that is stopped. Such a fault is played alone."""
    opsbench: str = ""
    """Root cause type of Cloud-OpsBench."""
    gate: bool = False
    """The tests run it, too."""
    next: str = ""
    """Start of the proposed next step, for tests."""

    @property
    def is_curable(self) -> bool:
        """True if a command of a member can end it.

        The last change can be taken back; the missing object or memory can be given; or the cluster accepts no such
        file. Else the fault is in a program, an image, a node, a part of the platform or an object of others.
        """
        if self.stops or any(each.edit or each.change for each in self.then):
            return not self.stops
        states = [each for each in (self.pod, *(step.pod for step in self.then)) if each]
        if states:
            return any(each.until or each.needs_memory for each in states)
        return bool(self.file or self.pods) and not self.then


class _File(_Data, frozen=True):
    sources: dict[str, str]
    faults: dict[str, Fault]


class Case(msgspec.Struct, frozen=True):
    """A fault, or a healthy state, with its name and class."""

    name: str
    class_: str
    script: Script
    source: str = ""

    @property
    def half(self) -> str:
        return half_of(self.name)


def half_of(name: str) -> str:
    """The coin: the same name is always in the same half."""
    return HALVES[hashlib.sha256(name.encode()).digest()[0] % 2]


@cache
def read_faults() -> tuple[Case, ...]:
    """All faults, in the order of their classes."""
    return tuple(case for file in sorted(FAULTS_FOLDER.glob("*.yaml")) for case in _read_file(file))


def _read_file(file: Path) -> Iterator[Case]:
    content = msgspec.convert(yaml.safe_load(file.read_text()), _File)
    for name, fault in content.faults.items():
        yield Case(name, file.stem, fault, content.sources.get(fault.source, fault.source))


@cache
def read_healthy_states() -> tuple[Case, ...]:
    states = msgspec.convert(yaml.safe_load(HEALTHY_FILE.read_text()), dict[str, Script])
    return tuple(Case(name, "healthy", state) for name, state in states.items())

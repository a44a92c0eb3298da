"""Inventory of a platform, used to plan a runtime roll and to find affected pods."""

from __future__ import annotations

from typing import Any

from pincompute.api.structs import StrictStruct


class Fleet(StrictStruct, frozen=True):
    """Every workload of a platform and the resources that planning needs."""

    cluster_facts: dict[str, str]
    """Content of the cluster facts ConfigMap."""
    resources: list[dict[str, Any]]
    """Projects, runtimes, runtime parts and workloads, complete."""


class FleetPod(StrictStruct, frozen=True):
    """A pod with the runtime parts and images it runs."""

    project: str
    workload: str
    pod: str
    parts: list[str] = []
    """Such as logs-2."""
    images: list[str] = []
    """Running images, with digest if known."""


class RollStatus(StrictStruct, frozen=True):
    """Progress of a runtime roll."""

    number: int
    reason: str = ""
    message: str = ""
    next: str = ""
    wave: str = ""
    is_current: bool = False
    """True when every workload has this runtime."""
    progress: dict[str, Any] = {}
    """Content of the runtime's `status.progress`."""

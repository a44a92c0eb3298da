"""CPU and memory that workloads use now, as their nodes measure it."""

from __future__ import annotations

from pincompute.api.structs import LenientStruct


class ResourceUsage(LenientStruct, frozen=True, omit_defaults=False):
    """Use of one resource by the running replicas of a workload: CPU in millicores, memory in bytes."""

    used: int | None = None
    """Sum over the replicas with a known use; null if none is known."""
    allotted: int = 0
    """Sum of the limits of these replicas, or of their requests where there is no limit."""
    requested: int = 0
    """Sum of the requests of these replicas."""
    limit: int | None = None
    """Sum of the limits of these replicas; null if one of their containers has none."""
    unknown: int = 0
    """Number of running replicas with an unknown use."""


class WorkloadUsage(LenientStruct, frozen=True, omit_defaults=False):
    """Use of the own containers of a workload, or of one replica; injected sidecars are not counted."""

    name: str
    running: int = 0
    """Number of replicas that run."""
    cpu: ResourceUsage = ResourceUsage()
    memory: ResourceUsage = ResourceUsage()
    restarts: int = 0
    """Restarts of the containers of all its pods."""
    note: str = ""
    """Why the use of some replicas is unknown."""

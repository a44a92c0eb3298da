"""Workloads of a project without an owner, and Kubernetes objects whose workload was deleted."""

from __future__ import annotations

from pincompute.api.structs import LenientStruct


class UnownedObject(LenientStruct, frozen=True, omit_defaults=False):
    """A workload, or a Kubernetes object that has the label of a workload."""

    kind: str
    name: str
    workload: str
    why: str
    since: str = ""
    """Time of its creation."""


class UnownedObjects(LenientStruct, frozen=True, omit_defaults=False):
    objects: list[UnownedObject] = []
    left_out: int = 0
    """Number of further ones, beyond the limit of a response."""

"""Preview of a document's effect, before anything is written: the response behind `pin plan`."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pincompute.api.provenance import ProvenanceLink
from pincompute.api.structs import LenientStruct
from pincompute.objects.content import Object


class ObjectAction(StrEnum):
    CREATE = "make"
    UPDATE = "change"
    REPLACE = "replace"
    DELETE = "remove"


class FieldChange(LenientStruct, frozen=True, omit_defaults=False):
    path: str
    before: str = ""
    after: str = ""


class NativeChange(LenientStruct, frozen=True, omit_defaults=False):
    action: ObjectAction
    native: str
    """Kind and name, such as `Deployment/hello`."""
    fields: list[FieldChange] = []


class Preview(LenientStruct, frozen=True, omit_defaults=False):
    kind: str
    project: str
    name: str
    address: str = ""
    changes: list[NativeChange] = []
    unchanged: int = 0
    restarts_replicas: bool = False
    """Its replicas will be replaced, one after the other."""
    free_capacity: list[str] = []
    """Number of further replicas for which nodes have capacity; empty if the caller may not read nodes."""
    quota_after: list[str] = []
    """Effect on the project's quota: usage and what remains."""
    natives: list[Object] = []
    """All wanted Kubernetes objects, complete."""
    errors: list[dict[str, Any]] = []
    """Problems for which the document would currently be rejected."""

    @property
    def label(self) -> str:
        """`PinterestService me/hello`; a cluster-scoped resource has no project in front."""
        return f"{self.kind} {self.project}/{self.name}" if self.project else f"{self.kind} {self.name}"


class BuildPreview(LenientStruct, frozen=True, omit_defaults=False):
    """Preview of deploying a published version."""

    version: str
    preview: Preview
    links: list[ProvenanceLink] = []
    """Provenance from commit to build; only on request."""
    errors: list[dict[str, Any]] = []
    """Problems for which the document would currently be rejected."""


class ChangePlan(LenientStruct, frozen=True, omit_defaults=False):
    """Preview of changing one setting of a workload."""

    kind: str
    project: str
    name: str
    effects: list[str] = []
    """What the change does, such as `1 replica -> 3`."""
    fields: list[str] = []
    """Changed fields, such as `replicas 1 -> 3`; empty if the workload already has the wanted values."""
    quota_after: list[str] = []
    """Effect on the project's quota: usage and what remains."""
    errors: list[dict[str, Any]] = []
    """Problems for which the change would currently be rejected."""

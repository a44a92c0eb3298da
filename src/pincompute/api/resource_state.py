"""State of a cluster-scoped resource, such as a project: the result of its deploy, and each later change of it."""

from __future__ import annotations

from pincompute.api.structs import LenientStruct

CREATED, CHANGED, UNCHANGED = "created", "changed", "unchanged"
"""What a deploy has done."""


class ResourceState(LenientStruct, frozen=True, omit_defaults=False):
    kind: str
    name: str
    action: str = ""
    """created, changed or unchanged; empty if the state is no result of a deploy."""
    ready: bool = False
    """Whether the operator has made it so."""
    reason: str = ""
    message: str = ""
    next: str = ""

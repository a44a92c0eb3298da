"""What a member of a project may do, and what may run there."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """What a member may do: each also what those after it may."""

    OWNER = "owner"
    DEPLOYER = "deployer"
    VIEWER = "viewer"


class Review(StrEnum):
    """What may run in a project. Work that nobody has reviewed must be asked for: it is never what was forgotten."""

    LANDED = "landed"
    OPEN = "open"

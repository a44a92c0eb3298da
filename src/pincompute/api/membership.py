"""Roles of project members and review modes."""

from __future__ import annotations

from enum import StrEnum


class ProjectRole(StrEnum):
    """Role of a member. Each role includes the rights of those after it."""

    OWNER = "owner"
    DEPLOYER = "deployer"
    VIEWER = "viewer"


class ReviewMode(StrEnum):
    """Which work may run in a project.

    `open` must be chosen explicitly; it is never the result of a forgotten field.
    """

    LANDED = "landed"
    OPEN = "open"

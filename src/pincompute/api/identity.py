"""Authenticated callers: users and programs."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

KUBERNETES_NAME_PREFIX = "system:"
"""Prefix of names that belong to Kubernetes."""
PROGRAM_PREFIX = "program "
RESERVED_NAME_PREFIXES = (KUBERNETES_NAME_PREFIX, PROGRAM_PREFIX, "spiffe://")
"""A user name with one of these prefixes is rejected: it could be mistaken for another identity."""


class IdentityType(StrEnum):
    """Type of caller; decides which member lists apply."""

    PERSON = "person"
    PROGRAM = "program"


class Identity(NamedTuple):
    """An authenticated caller."""

    name: str
    """User name; for a program its project and workload, such as `ads/ci`."""
    type: IdentityType = IdentityType.PERSON
    groups: frozenset[str] = frozenset()
    is_admin: bool = False
    """Platform administrator: has access to every project and to cluster-scoped resources."""
    valid_until: datetime | None = None
    """Expiry of the credential; None if it does not expire."""
    is_local: bool = False
    """Signed in by the local token, so that only requests from the desk's own machine are accepted."""

    def __str__(self) -> str:
        """Name for records and messages: programs are marked, so that they cannot be confused with users."""
        return f"{PROGRAM_PREFIX}{self.name}" if self.type is IdentityType.PROGRAM else self.name

"""Who asks: a person or a program, by the name that whoever vouches for them gives."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

RESERVED = "system:"
"""Names that begin so are Kubernetes' own."""
PROGRAM = "program "
FOREIGN = (RESERVED, PROGRAM, "spiffe://")
"""No person is called by a name that begins so: it would be read as somebody else."""


class Sort(StrEnum):
    """Which of a project's lists they can stand in."""

    PERSON = "person"
    PROGRAM = "program"


class Identity(NamedTuple):
    """Somebody whom the desk knows."""

    name: str
    """A program's is its project and its workload, such as `ads/ci`."""
    sort: Sort = Sort.PERSON
    groups: frozenset[str] = frozenset()
    administers: bool = False
    """The platform: every project, and all that is in none."""
    until: datetime | None = None
    """Whoever vouches for them does so until then."""

    def __str__(self) -> str:
        """As records and messages have it."""
        return f"{PROGRAM}{self.name}" if self.sort is Sort.PROGRAM else self.name

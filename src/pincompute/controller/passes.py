"""A pass: of what it is made, what caused it, and what it came to."""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import NamedTuple


class Key(NamedTuple):
    """What is planned as one."""

    project: str
    """Empty for what belongs to none, such as a project itself."""
    name: str
    kind: str = ""
    """Empty for workloads: a name is one workload's in its project, over all kinds."""

    def __str__(self) -> str:
        return "/".join(each for each in (self.kind, self.project, self.name) if each)


class Cause(Enum):
    """Why a pass is made; the lower its level, the sooner."""

    EDITED = "its owner was written, and nobody has looked at that yet", 0
    SEEN = "it, or something of it, was seen to change", 1
    DUE = "the time for it has come", 1
    AGAIN = "the pass before did not succeed", 1
    AROUND = "what it is planned by has changed", 2
    FOUND = "it was there when this process began", 2

    @property
    def words(self) -> str:
        return self.value[0]

    @property
    def level(self) -> int:
        return self.value[1]


LEVELS = 1 + max(each.level for each in Cause)


class Outcome(StrEnum):
    """How a pass ended."""

    SETTLED = "settled"
    """All was as wanted, and nothing was written."""
    WROTE = "wrote"
    GONE = "gone"
    """Nobody wants it any more."""
    BEHIND = "behind"
    """The view is older than our own last writes."""
    CONFLICT = "conflict"
    """Somebody else wrote in between."""
    REFUSED = "refused"
    """Something stands in the way, and was told."""
    BROKE = "broke"
    """A fault of ours."""


class Made(NamedTuple):
    """What a pass came to."""

    outcome: Outcome = Outcome.SETTLED
    again: float | None = None
    """After how many seconds it should be looked at again, if ever."""
    steps: tuple[str, ...] = ()
    """What was done, such as `Apply Deployment/hello`."""
    why: str = ""
    """What is not as wanted, or what stands in the way."""


RETRIED = frozenset({Outcome.CONFLICT, Outcome.REFUSED, Outcome.BROKE})

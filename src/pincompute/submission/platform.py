"""What the desk knows of a platform that runs work: what would become of something there, and that it can be told to.

Kubernetes is the first. Nothing of the desk but the adapter of a platform knows more of it than this.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec
from aiohttp import ClientWebSocketResponse

from pincompute.api.change import Change
from pincompute.api.project import Project
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem
from pincompute.planning.quotas.footprint import Footprint, Place


class Write(msgspec.Struct, frozen=True, tag=True):
    """A workload is to be as a document says."""

    workload: dict[str, Any]


class Edit(msgspec.Struct, frozen=True, tag=True):
    """One thing of it is to be otherwise; and what that will do, in words."""

    change: Change
    said: tuple[str, ...]


class Remove(msgspec.Struct, frozen=True, tag=True):
    """It is to be gone; with a uid, only that very one."""

    uid: str = ""


Order = Write | Edit | Remove
"""What is told to a platform, and kept until it has taken it."""


class Rendered(NamedTuple):
    """What is to become of a workload."""

    place: Place
    order: Order
    whole: Workload | None = None
    """As it is to be; nothing where it is to be gone."""
    footprint: Footprint | None = None
    """What it will hold; nothing where it asks for nothing."""
    project: Project | None = None
    """By whose quota; without one nothing is bounded."""


class Delivered(NamedTuple):
    """It was taken."""

    answer: object
    """What the person is told."""
    written: int = 0
    """At which revision of the platform; 0 where nothing had to be written."""


class Seen(NamedTuple):
    """What a workload holds by now."""

    place: Place
    footprint: Footprint | None
    """Nothing where it is gone."""
    revision: int
    """All that was written up to here has been seen."""


class Sight(NamedTuple):
    seen: tuple[Seen, ...]
    whole: Mapping[str, int] | None = None
    """These are all that there are; and up to which revision, for each kind."""


class Away(Exception):  # noqa: N818  (it reads as what happened)
    """The platform cannot say: whether it did what it was told is not known, and it may be told again."""

    def __init__(self, problem: Problem, *, answered: bool = False) -> None:
        super().__init__(problem.what)
        self.problem = problem
        self.answered = answered
        """It is there, and fails at this one thing."""


class Line(Protocol):
    """To a copy: what it carries is between the two at its ends."""

    socket: ClientWebSocketResponse


class Platform(Protocol):
    """What cannot be is refused with words; what cannot be known now is Away."""

    name: str

    async def render(self, workload: Workload, pending: Workload | None) -> Rendered:
        """`pending` is what it was accepted as before and is not yet there."""
        ...

    async def amend(self, project: str, name: str, change: Change, pending: Workload | None) -> Rendered: ...

    async def remove(self, project: str, name: str, uid: str, pending: Workload | None) -> Rendered: ...

    async def project(self, name: str) -> Project | None:
        """Nothing where it has no more than a name."""
        ...

    async def workloads(self, project: str) -> list[Workload]:
        """All of a project as last seen, and whatever was delivered before among them."""
        ...

    async def projects(self) -> Mapping[str, Project]:
        """All there are, by name, as they were last seen."""
        ...

    async def reread(self, project: str) -> Project | None:
        """As it is now; nothing where there is none of this name."""
        ...

    async def deliver(self, submission: str, place: Place, order: Order) -> Delivered:
        """As often as it takes: what was taken already is left alone."""
        ...

    async def seen(self) -> None:
        """Return once all there is was seen."""
        ...

    def observe(self) -> AsyncGenerator[Sight]:
        """All there is, and then what changes."""
        ...

    def look(self, place: Place) -> Seen: ...

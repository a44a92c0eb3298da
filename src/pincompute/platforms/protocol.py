"""The protocol of platforms that run workloads: all that the desk knows of one. Kubernetes is the first.

A platform renders what it would make of a workload, carries out commands, reports the quota that workloads use, and has
the reads and the control of rolls of `platforms.access`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from pincompute.admission.infrastructure import Infrastructure
from pincompute.api.change import Change
from pincompute.api.custom_resource import CustomResource
from pincompute.api.insight import WriteMark
from pincompute.api.preview import Preview
from pincompute.api.project import Project
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem
from pincompute.planning.footprint import Footprint, WorkloadKey
from pincompute.platforms.access import RuntimeController, WorkloadReader


class PutWorkload(msgspec.Struct, frozen=True, tag="Write"):
    """Command: create a workload, or update it to a document. Tags are stored in the outbox, with their first names."""

    workload: dict[str, Any]


class ChangeWorkload(msgspec.Struct, frozen=True, tag="Edit"):
    """Command: change one setting of a workload."""

    change: Change
    effects: tuple[str, ...] = msgspec.field(name="said")
    """Descriptions of the change's effects."""


class DeleteWorkload(msgspec.Struct, frozen=True, tag="Remove"):
    """Command: delete a workload; with a uid, only that very object."""

    uid: str = ""


class PutProject(msgspec.Struct, frozen=True, tag="PutProject"):
    """Command: create a project, or replace its document."""

    project: dict[str, Any]
    base: str
    """Digest of the project on which this was decided; empty if there was none. Another one must not be overwritten."""


class DeleteProject(msgspec.Struct, frozen=True, tag="DeleteProject"):
    """Command: delete a project, if it has no workloads; with a uid, only that very object."""

    uid: str = ""


class CreateInfrastructure(msgspec.Struct, frozen=True, tag="CreateInfrastructure"):
    """Command: create a runtime or a version of a runtime part, which are immutable."""

    document: dict[str, Any]


PlatformCommand = PutWorkload | ChangeWorkload | DeleteWorkload | PutProject | DeleteProject | CreateInfrastructure


class RenderedWorkload(NamedTuple):
    """The result of rendering a submission."""

    workload_key: WorkloadKey
    command: PlatformCommand
    workload: Workload | None = None
    """As it will be; None if it will be deleted."""
    footprint: Footprint | None = None
    """The quota that it needs; None if it needs none."""
    project: Project | None = None
    """The project with the quota; None: unlimited."""
    surge: int = 0
    """Pods of the footprint that exist only during a rollout."""
    document: CustomResource | None = None
    """What is written of another kind than a workload: as it will be."""


class Delivery(NamedTuple):
    """A command that was carried out."""

    result: object
    """The response to the caller."""
    written_revision: int = 0
    """The platform's revision of the write; 0 if nothing had to be written."""


class ObservedUsage(NamedTuple):
    """The quota that a workload uses on the platform."""

    workload_key: WorkloadKey
    footprint: Footprint | None
    """None if the workload does not exist."""
    revision: int
    """Writes up to this revision are included."""


class UsageUpdate(NamedTuple):
    observed: tuple[ObservedUsage, ...]
    resync_revisions: Mapping[str, int] | None = None
    """Set if `observed` has all workloads: the revision up to which each kind is complete."""


class PlatformUnavailable(Exception):  # noqa: N818  (named for what happened, not for an error class)
    """The platform cannot tell. Whether it has carried out a command is unknown, so the command may be repeated."""

    def __init__(self, problem: Problem, *, responded: bool = False, failed: bool = False) -> None:
        super().__init__(problem.what)
        self.problem = problem
        self.responded = responded
        """It is reachable, so other requests may succeed."""
        self.failed = failed
        """It is reachable and failed at this one request, so that the request may be the cause."""


class Platform(Protocol):
    """Every method raises Refused for what is impossible, and PlatformUnavailable for what is unknown now.

    `pending` is the workload as it was last accepted, if that is not delivered yet: the next submission builds on it.
    """

    name: str

    @property
    def reader(self) -> WorkloadReader: ...

    @property
    def runtimes(self) -> RuntimeController: ...

    async def preview(self, resources: Sequence[CustomResource]) -> list[Preview]:
        """Previews resources: changes, and rejections by the platform. Nothing is written."""
        ...

    async def render(self, workload: Workload, pending: Workload | None) -> RenderedWorkload: ...

    async def render_change(
        self, project: str, name: str, change: Change, pending: Workload | None
    ) -> RenderedWorkload: ...

    async def render_delete(self, project: str, name: str, uid: str, pending: Workload | None) -> RenderedWorkload: ...

    async def deliver(self, submission: str, key: WorkloadKey, command: PlatformCommand) -> Delivery:
        """Carries out a command. Idempotent: it does nothing if it did the same for this submission already."""
        ...

    async def read_infrastructure(self, kind: str, name: str) -> Infrastructure | None:
        """A runtime or runtime part from the platform itself; None if there is none."""
        ...

    async def require_empty_project(self, name: str) -> None:
        """Refuses a project that has workloads."""
        ...

    async def find_project(self, name: str) -> Project | None:
        """None for a project that is only a namespace; Refused for one that does not exist."""
        ...

    async def read_project(self, project: str) -> Project | None:
        """A project from the platform itself, not from a cache; None if there is none."""
        ...

    async def cached_projects(self) -> Mapping[str, Project]:
        """All projects by name, from the watch cache."""
        ...

    async def list_workloads(self, project: str) -> list[Workload]:
        """All workloads of a project, including everything that was delivered before the call."""
        ...

    def recent_writes(self, project: str) -> list[WriteMark]:
        """What was delivered to a project lately, which any other reader of the platform may not have received yet."""
        ...

    async def wait_synced(self) -> None:
        """Returns once the watch caches are filled."""
        ...

    def watch_usage(self) -> AsyncGenerator[UsageUpdate]:
        """The usage of all workloads, and then of those that change."""
        ...

    def observed_usage(self, key: WorkloadKey) -> ObservedUsage:
        """The usage of one workload, from the watch cache."""
        ...

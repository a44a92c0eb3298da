"""Reads, writes and deletes the projects of one cluster. Used by the desk, and by the CLI with a kubeconfig."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import NamedTuple

import msgspec

from pincompute.admission.authorization import project_unknown
from pincompute.admission.project_changes import (
    check_project_empty,
    content_digest,
    merge_metadata,
    project_changed_problem,
)
from pincompute.api.names import SUBMISSION_ANNOTATION
from pincompute.api.project import Project
from pincompute.api.resource_state import CHANGED, CREATED, UNCHANGED, ResourceState
from pincompute.api.status import READY, find_condition
from pincompute.api.structs import without_defaults
from pincompute.base.problem import Problem, Refused, Where, refuse_if
from pincompute.base.reasons import PROJECT_TERMINATING
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.client import Client
from pincompute.kube.errors import AlreadyExists, Conflict, NotFound
from pincompute.platforms.kubernetes.changes import MAX_WRITE_ATTEMPTS, manifest_of, recreated_problem
from pincompute.platforms.kubernetes.quota_usage import list_workloads

_PROJECTS = CUSTOM_RESOURCES[Project.__name__]


class WrittenProject(NamedTuple):
    """The result of a write, and its resourceVersion; 0 if nothing had to be written."""

    state: ResourceState
    revision: int = 0


class ProjectClient:
    """The part of a `WorkloadClient` that is about projects."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def read_project(self, name: str) -> Project | None:
        try:
            return msgspec.convert(await self._client.get(_PROJECTS, name), Project)
        except NotFound:
            return None

    async def project_document(self, name: str) -> Project:
        """A project as it is in the cluster; Refused if there is none."""
        if project := await self.read_project(name):
            return project
        raise Refused(project_unknown(name))

    async def write_project(
        self, project: Project, *, manager: str, base: str | None = None, submission: str = ""
    ) -> WrittenProject:
        """Creates a project, or replaces its spec.

        `base` is the digest of the project on which the write was decided, empty if there was none: what the decision
        did not see must not be overwritten. None overwrites anything.
        """
        name = project.metadata.name
        for _ in range(MAX_WRITE_ATTEMPTS):
            before = await self.read_project(name)
            try:
                if before is None:
                    _require_base(name, base, "")
                    created = await self._create_project(_with_submission(project, submission), manager)
                    return WrittenProject(_state_of(created, CREATED), int(created.metadata.resource_version))
                if submission and before.metadata.annotations.get(SUBMISSION_ANNOTATION) == submission:
                    # An earlier attempt has written it, and its response was lost.
                    action = CREATED if before.metadata.generation == 1 else CHANGED
                    return WrittenProject(_state_of(before, action), int(before.metadata.resource_version))
                _require_base(name, base, content_digest(before))
                wanted = merge_metadata(before, project)
                if content_digest(wanted) == content_digest(before):
                    return WrittenProject(_state_of(before, UNCHANGED))
                written = await self._replace_project(before, _with_submission(wanted, submission), manager)
                return WrittenProject(_state_of(written, CHANGED), int(written.metadata.resource_version))
            except (AlreadyExists, Conflict):
                # Another write came in between, usually of the status.
                continue
        raise Refused(project_changed_problem(name))

    async def _create_project(self, project: Project, manager: str) -> Project:
        return msgspec.convert(await self._client.create(_PROJECTS, manifest_of(project), manager=manager), Project)

    async def _replace_project(self, before: Project, wanted: Project, manager: str) -> Project:
        """Replaces the spec, if nothing was written since it was read. An apply would keep members left out of it."""
        metadata = before.metadata
        if metadata.deletion_timestamp:
            what = f"project {metadata.name} is being deleted"
            raise Refused(Problem(PROJECT_TERMINATING, what, Where(object=f"project {metadata.name}")))
        body = [
            {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata.resource_version},
            {"op": "add", "path": "/metadata/labels", "value": wanted.metadata.labels},
            {"op": "add", "path": "/metadata/annotations", "value": wanted.metadata.annotations},
            {"op": "replace", "path": "/spec", "value": without_defaults(wanted.spec)},
        ]
        patched = await self._client.patch(_PROJECTS, metadata.name, "", body, style="json", manager=manager)
        return msgspec.convert(patched, Project)

    async def require_empty_project(self, name: str) -> None:
        """Refuses the deletion of a project with workloads."""
        found = await list_workloads(self._client, name)
        refuse_if(check_project_empty(name, [each.metadata.name for each in found]))

    async def remove_project(self, name: str, uid: str = "") -> None:
        """Deletes an empty project, and by garbage collection its namespace."""
        await self.require_empty_project(name)
        try:
            await self._client.delete(_PROJECTS, name, uid=uid)
        except NotFound:
            # It existed when the deletion was decided, so it was deleted meanwhile.
            return
        except Conflict as error:
            raise Refused(recreated_problem(name, name)) from error

    async def follow_project(self, name: str) -> AsyncGenerator[ResourceState]:
        """The present state, then each change, until the project is deleted."""
        await self.project_document(name)
        last: ResourceState | None = None
        async with aclosing(self._client.follow(_PROJECTS, name, type=Project)) as projects:
            async for project in projects:
                state = _state_of(project)
                if state != last:
                    last = state
                    yield state


def _require_base(name: str, base: str | None, current: str) -> None:
    if base is not None and base != current:
        raise Refused(project_changed_problem(name))


def _with_submission(project: Project, submission: str) -> Project:
    if not submission:
        return project
    annotations = {**project.metadata.annotations, SUBMISSION_ANNOTATION: submission}
    return msgspec.structs.replace(project, metadata=msgspec.structs.replace(project.metadata, annotations=annotations))


def _state_of(project: Project, action: str = "") -> ResourceState:
    status = project.status
    condition = find_condition(status.conditions, READY)
    observed = status.observed_generation == project.metadata.generation
    return ResourceState(
        kind=project.kind,
        name=project.metadata.name,
        action=action,
        ready=observed and condition is not None and condition.status == "True",
        reason=condition.reason if condition else "",
        message=condition.message if condition else "",
        next=status.next,
    )

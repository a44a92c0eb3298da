"""The checks of a submission that is of a project itself: may its caller change these fields, and is it empty."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from pincompute.admission.authorization import project_unknown
from pincompute.admission.project_changes import (
    check_project_change,
    content_digest,
    merge_metadata,
    project_changed_problem,
    summarize_change,
)
from pincompute.api.identity import Identity
from pincompute.api.project import Project
from pincompute.base.clock import Clock
from pincompute.base.problem import Problem, Refused
from pincompute.desk.request import PutDocument, RemoveProject, project_key
from pincompute.platforms.protocol import DeleteProject, Platform, PutProject, RenderedWorkload


class CheckedProject(NamedTuple):
    """A rendered change of a project, the problems for which it is refused, and the note of the audit log."""

    rendered: RenderedWorkload
    problems: tuple[Problem, ...] = ()
    audit_reason: str = ""


class ProjectChecker:
    def __init__(self, platform: Platform, clock: Clock) -> None:
        self._platform = platform
        self._clock = clock

    async def check_project(
        self, action: PutDocument | RemoveProject, pending: Project | None, caller: Identity
    ) -> CheckedProject:
        """`pending` is the project as it was last accepted, if that is not delivered yet."""
        if isinstance(action, RemoveProject):
            return await self._check_removal(action.project)
        return await self._check_document(action, pending, caller)

    async def _check_document(self, action: PutDocument, pending: Project | None, caller: Identity) -> CheckedProject:
        """Decides by what the platform itself has: a cache could be behind a change that an administrator made."""
        document, name = action.project, action.project.metadata.name
        before = pending or await self._platform.read_project(name)
        if action.generation and (before is None or before.metadata.generation != action.generation):
            # One that is not delivered yet has no generation.
            raise Refused(project_changed_problem(name))
        wanted = merge_metadata(before, document)
        problems = check_project_change(caller, before, wanted, self._clock.now())
        command = PutProject(msgspec.to_builtins(wanted), content_digest(before) if before else "")
        rendered = RenderedWorkload(project_key(name), command, document=wanted)
        return CheckedProject(rendered, tuple(problems), summarize_change(before, wanted))

    async def _check_removal(self, name: str) -> CheckedProject:
        project = await self._platform.read_project(name)
        if project is None:
            raise Refused(project_unknown(name))
        await self._platform.require_empty_project(name)
        return CheckedProject(RenderedWorkload(project_key(name), DeleteProject(project.metadata.uid)))

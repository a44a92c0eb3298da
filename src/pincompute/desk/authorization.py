"""Authorizes callers by the members of a project, as the platform has them."""

from __future__ import annotations

import structlog

from pincompute.admission.authorization import Permission, authorize, highest_role
from pincompute.api.identity import Identity
from pincompute.api.whoami import Membership, Whoami
from pincompute.base.problem import Problem, Refused
from pincompute.platforms.protocol import Platform

log = structlog.get_logger()


class Authorizer:
    """Allows by the watch cache; before it denies, it reads the project from the cluster."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform

    async def authorize(self, caller: Identity, permission: Permission, project: str = "", kind: str = "") -> None:
        """Raises Refused if the caller lacks a permission."""
        if problem := await self.find_problem(caller, permission, project, kind):
            log.warning("permission denied", caller=str(caller), permission=permission.name, project=project, kind=kind)
            raise Refused(problem)

    async def find_problem(
        self, caller: Identity, permission: Permission, project: str = "", kind: str = ""
    ) -> Problem | None:
        """Why the caller lacks a permission, or None."""
        if caller.is_admin:
            return None
        cached = (await self._platform.cached_projects()).get(project)
        if authorize(caller, permission, project, cached, kind) is None:
            return None
        # The cache may lack a member added a moment ago. An unknown project is read, too: a denial must take as
        # long as for an existing one, or its duration would tell which projects exist.
        return authorize(caller, permission, project, await self._platform.read_project(project), kind)

    async def whoami(self, caller: Identity) -> Whoami:
        """The caller's identity, and its role in each project."""
        projects = sorted((await self._platform.cached_projects()).items())
        roles = [(name, project, highest_role(caller, project)) for name, project in projects]
        memberships = [
            Membership(project=name, role=role, owner=project.spec.owner, contact=project.spec.contact)
            for name, project, role in roles
            if role
        ]
        groups, until = sorted(caller.groups), caller.valid_until.isoformat() if caller.valid_until else ""
        return Whoami(
            str(caller), caller.type, groups, is_admin=caller.is_admin, valid_until=until, projects=memberships
        )

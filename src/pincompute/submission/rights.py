"""Whether who asks may: the table, and a project's members as they were last seen."""

from __future__ import annotations

import structlog

from pincompute.api.identity import Identity
from pincompute.api.whoami import Membership, Whoami
from pincompute.base.problem import Refused
from pincompute.planning.rights import Verb, may, role
from pincompute.submission.platform import Platform

log = structlog.get_logger()


class Rights:
    """A yes is from what is watched; a no has looked again."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform

    async def demand(self, who: Identity, verb: Verb, project: str = "", kind: str = "") -> None:
        """Go on where they may."""
        if who.administers:
            return
        if may(who, verb, project, (await self._platform.projects()).get(project), kind) is None:
            return
        # What was written a moment ago may not have been seen; and an answer takes as long whether or not it is there.
        if problem := may(who, verb, project, await self._platform.reread(project), kind):
            log.warning("not allowed", who=str(who), verb=verb.name, project=project, kind=kind)
            raise Refused(problem)

    async def of(self, who: Identity) -> Whoami:
        """Who somebody is here, and what they are in each project."""
        projects = sorted((await self._platform.projects()).items())
        roles = [(name, project, role(who, project)) for name, project in projects]
        found = [
            Membership(project=name, role=has, owner=project.spec.owner, contact=project.spec.contact)
            for name, project, has in roles
            if has
        ]
        groups, until = sorted(who.groups), who.until.isoformat() if who.until else ""
        return Whoami(str(who), who.sort, groups, administers=who.administers, until=until, projects=found)

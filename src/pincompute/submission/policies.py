"""Policies of the platform and of projects, asked before something is accepted."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from pincompute.api.documents import read_one
from pincompute.api.identity import Identity
from pincompute.api.policy import Listed, Policy, policy_faults
from pincompute.api.project import Project
from pincompute.api.shape import misfits
from pincompute.api.wire import Strict
from pincompute.base.problem import Problem, Refused, refuse_all
from pincompute.base.reasons import DOCUMENT_INVALID
from pincompute.planning.policies import Case, judge
from pincompute.planning.quotas.footprint import NOTHING
from pincompute.submission import record
from pincompute.submission.accept import unfit
from pincompute.submission.database import Database
from pincompute.submission.platform import Rendered
from pincompute.submission.record import BREAK_GLASS, DEPLOY, Vouched


class PlatformPolicies(Strict, frozen=True):
    """What all work of the platform must keep."""

    policies: Listed = msgspec.field(default_factory=list)


def read_policies(text: str, file: str) -> tuple[Policy, ...]:
    """The platform's own, from a file; refused with everything that is wrong with them, line by line."""
    document = read_one(text, file)
    faults = list(misfits(PlatformPolicies, document.content, ()))
    if not faults:
        found = msgspec.convert(document.content, PlatformPolicies).policies
        faults = list(policy_faults(found, ("policies",)))
    refuse_all(
        Problem(DOCUMENT_INVALID, each.what, document.where(*each.path), each.note, each.next) for each in faults
    )
    return tuple(msgspec.convert(document.content, PlatformPolicies).policies)


class Policies:
    """Those of the platform, and with them those of whatever project something is for."""

    def __init__(self, platform: tuple[Policy, ...], database: Database, cluster: str) -> None:
        self.platform = platform
        self._database = database
        self._cluster = cluster

    async def demand(self, verb: str, rendered: Rendered, who: Identity, vouched: Vouched | None) -> None:
        """Go on where every one is kept; where one is not, it is told with all else that is in the way."""
        whole, place, project = rendered.whole, rendered.place, rendered.project
        if whole is None or not (self.platform or (project and project.spec.policies)):
            return
        if vouched is None and whole.spec.build and verb not in {DEPLOY, BREAK_GLASS}:
            # What is changed came as what was published.
            last = await self._database.do(partial(record.deployed, project=place.project, name=place.name))
            vouched = last[1] if last else None
        if denied := self.denials(rendered, who, vouched):
            short = await self._database.do(partial(unfit, cluster=self._cluster, rendered=rendered))
            raise Refused(*denied, *filter(None, (short,)))

    def denials(self, rendered: Rendered, who: Identity, vouched: Vouched | None = None) -> tuple[Problem, ...]:
        """What is to be gone is nobody's to keep."""
        if rendered.whole is None:
            return ()
        build = _build(vouched, rendered.project) if vouched else {}
        case = Case(rendered.whole, rendered.footprint or NOTHING, rendered.project, who, build)
        return judge(self.platform, case)


def _build(vouched: Vouched, project: Project | None) -> dict[str, Any]:
    landing = project.spec.landing if project else None
    found = {"version": vouched.version, "commit": vouched.commit, "builder": vouched.builder}
    reviewers = [each for each in vouched.reviewers.split(", ") if each]
    return {**found, "reviewers": reviewers, **({"branch": landing.branch} if landing else {})}

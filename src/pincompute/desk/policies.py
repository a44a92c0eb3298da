"""Checks the policies of the platform and of the project before a submission is accepted."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from pincompute.admission.policies import PolicyInput, evaluate_policies
from pincompute.api.documents import read_document
from pincompute.api.identity import Identity
from pincompute.api.policy import Policy, PolicyList
from pincompute.api.policy_rules import policy_errors
from pincompute.api.project import Project
from pincompute.api.structs import StrictStruct
from pincompute.api.type_errors import type_errors
from pincompute.base.aio import beside_loop
from pincompute.base.problem import Problem, refuse_all
from pincompute.base.reasons import DOCUMENT_INVALID
from pincompute.desk.store import record
from pincompute.desk.store.database import Database
from pincompute.desk.store.record import DEPLOYMENTS, VerifiedBuild
from pincompute.planning.footprint import EMPTY_FOOTPRINT
from pincompute.planning.views.plan_preview import is_large
from pincompute.platforms.protocol import RenderedWorkload


class PlatformPolicies(StrictStruct, frozen=True):
    """The file of policies that all workloads of the platform must satisfy."""

    policies: PolicyList = msgspec.field(default_factory=list)


def read_policies(text: str, file: str) -> tuple[Policy, ...]:
    """The platform's policies from a file; Refused with all errors and their lines."""
    document = read_document(text, file)
    errors = list(type_errors(PlatformPolicies, document.content, ()))
    if not errors:
        found = msgspec.convert(document.content, PlatformPolicies).policies
        errors = list(policy_errors(found, ("policies",)))
    refuse_all(
        Problem(DOCUMENT_INVALID, each.what, document.where(*each.path), each.note, each.next) for each in errors
    )
    return tuple(msgspec.convert(document.content, PlatformPolicies).policies)


class PolicyChecker:
    """Evaluates the platform's policies and those of a workload's project."""

    def __init__(self, platform: tuple[Policy, ...], database: Database) -> None:
        self.platform_policies = platform
        self._database = database

    async def find_denials(
        self, verb: str, rendered: RenderedWorkload, caller: Identity, build: VerifiedBuild | None
    ) -> tuple[Problem, ...]:
        """The policies that deny a workload. No policy denies a deletion."""
        workload, key, project = rendered.workload, rendered.workload_key, rendered.project
        if workload is None or not (self.platform_policies or (project and project.spec.policies)):
            return ()
        if build is None and workload.spec.build and verb not in DEPLOYMENTS:
            # A change keeps the build that the workload was deployed as.
            last = await self._database.transact(partial(record.last_deployment, project=key.project, name=key.name))
            build = last[1] if last else None
        facts = _build_facts(build, project) if build else {}
        footprint = rendered.footprint or EMPTY_FOOTPRINT
        policy_input = PolicyInput(workload, footprint, project, caller, facts)
        evaluate = partial(evaluate_policies, self.platform_policies, policy_input)
        # A rule may visit each item of a large workload; so does the explanation of its denial.
        return await beside_loop(evaluate, large=is_large(workload))


def _build_facts(build: VerifiedBuild, project: Project | None) -> dict[str, Any]:
    """The variable `build` of policy rules."""
    landing = project.spec.landing if project else None
    facts = {"version": build.version, "commit": build.commit, "builder": build.builder}
    reviewers = [each for each in build.reviewers.split(", ") if each]
    return {**facts, "reviewers": reviewers, **({"branch": landing.branch} if landing else {})}

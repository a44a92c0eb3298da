"""The checks of a submission that need no transaction: render it for the platform, its review, its policies.

A deploy is refused with all problems that are found here, and a preview reports the same ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, assert_never

import msgspec

from pincompute.admission.break_glass import check_break_glass_needed, set_break_glass
from pincompute.admission.infrastructure import Infrastructure, check_infrastructure
from pincompute.admission.pod_security import check_pod_security
from pincompute.admission.reviews import ReviewVerdict, check_review_required, workload_of_build
from pincompute.api.change import Rollback
from pincompute.api.custom_resource import CustomResource
from pincompute.api.identity import Identity
from pincompute.api.project import Project
from pincompute.api.workload import Workload
from pincompute.base.clock import Clock
from pincompute.base.problem import Problem, Refused, refuse_all, refuse_if
from pincompute.desk.builds import BuildVerifier, verified_build
from pincompute.desk.config_bundles import ConfigBundles
from pincompute.desk.policies import PolicyChecker
from pincompute.desk.project_checks import ProjectChecker
from pincompute.desk.request import (
    ApplyChange,
    CreateDocument,
    DeployBuild,
    DeployFile,
    Item,
    PutDocument,
    RemoveProject,
    RemoveWorkload,
    WorkloadAction,
    infrastructure_key,
)
from pincompute.desk.rollback_review import review_rollback_target
from pincompute.desk.secrets import SecretStore, secret_problems
from pincompute.desk.store.database import Database
from pincompute.desk.store.record import VerifiedBuild
from pincompute.planning.break_glass import check_break_glass_expired
from pincompute.platforms.protocol import CreateInfrastructure, Platform, RenderedWorkload


class CheckedItem(NamedTuple):
    """A rendered item, and the problems for which it is refused."""

    rendered: RenderedWorkload
    submitted: Workload | None = None
    """The workload as submitted, without the edits made since; None for changes and deletions."""
    problems: tuple[Problem, ...] = ()
    verified_build: VerifiedBuild | None = None
    verdict: ReviewVerdict = ReviewVerdict()
    audit_reason: str = ""
    """The note of the audit log; empty for that of the submission."""


def _forbidden_pods(checked: CheckedItem) -> Iterator[Problem]:
    """The problem of a submitted file that Pod Security forbids. Other changes leave the pods as they were accepted."""
    if checked.submitted and (problem := check_pod_security(checked.submitted, checked.rendered.project)):
        yield problem


class ItemChecker:
    def __init__(  # noqa: PLR0913  (its collaborators)
        self,
        database: Database,
        platform: Platform,
        builds: BuildVerifier,
        policies: PolicyChecker,
        *,
        clock: Clock,
        secret_store: SecretStore,
        config_bundles: ConfigBundles,
    ) -> None:
        self._config_bundles = config_bundles
        self._database = database
        self._platform = platform
        self._builds = builds
        self._policies = policies
        self._clock = clock
        self._secret_store = secret_store
        self._projects = ProjectChecker(platform, clock)

    async def check(self, item: Item, pending: CustomResource | None, caller: Identity) -> CheckedItem:
        """Renders an item and finds all problems of the result. Raises Refused if it cannot be rendered.

        `pending` is the resource as it was last accepted, if that is not delivered yet.
        """
        action = item.action
        if isinstance(action, PutDocument | RemoveProject):
            of_project = await self._projects.check_project(
                action, pending if isinstance(pending, Project) else None, caller
            )
            return CheckedItem(of_project.rendered, None, of_project.problems, audit_reason=of_project.audit_reason)
        if isinstance(action, CreateDocument):
            return await self._check_infrastructure(action.resource, pending)
        checked = await self._render_and_review(item, action, pending if isinstance(pending, Workload) else None)
        denials = await self._policies.find_denials(
            item.submission.verb, checked.rendered, caller, checked.verified_build
        )
        workload = _with_new_secrets(action, checked)
        refused = await secret_problems(self._secret_store, workload) if workload else ()
        return checked._replace(problems=(*checked.problems, *_forbidden_pods(checked), *denials, *refused))

    async def _render_and_review(self, item: Item, action: WorkloadAction, pending: Workload | None) -> CheckedItem:
        match action:
            case DeployFile(workload, planned_project):
                workload = await self._config_bundles.resolve(workload)
                rendered = await self._platform.render(set_break_glass(workload, item.override), pending)
                if planned_project:
                    rendered = rendered._replace(project=planned_project)
                check_file = check_break_glass_needed if item.override else check_review_required
                problem = check_file(rendered.project, workload)
                return CheckedItem(rendered, workload, (problem,) if problem else ())
            case DeployBuild(project, name, version):
                build = await self._builds.find_build(project, name, version)
                workload = await self._config_bundles.resolve(workload_of_build(build))
                rendered = await self._platform.render(set_break_glass(workload, item.override), pending)
                if item.override:
                    refuse_if(check_break_glass_needed(rendered.project, workload))
                verdict = await self._builds.review_verdict(build, rendered.project)
                problems = verdict.problems(break_glass=item.override is not None)
                return CheckedItem(rendered, workload, tuple(problems), verified_build(build, verdict), verdict)
            case ApplyChange(project, name, change):
                rendered = await self._platform.render_change(project, name, change, pending)
                target = None
                if rendered.workload:
                    # It was reviewed when it was deployed, or runs under an override that must not have expired.
                    refuse_if(check_break_glass_expired(rendered.workload, self._clock.now()))
                    if isinstance(change, Rollback):
                        refuse_all(await self._config_bundles.missing_versions(rendered.workload))
                        target = await review_rollback_target(
                            self._database, self._builds, rendered.workload, rendered.project
                        )
                return CheckedItem(rendered, verified_build=target)
            case RemoveWorkload(project, name, uid):
                return CheckedItem(await self._platform.render_delete(project, name, uid, pending))
            case Refused() as refused:
                raise refused
            case _:
                assert_never(action)

    async def _check_infrastructure(self, resource: Infrastructure, pending: CustomResource | None) -> CheckedItem:
        kind, name = resource.kind, resource.metadata.name
        accepted = pending if isinstance(pending, Infrastructure) else None
        before = accepted or await self._platform.read_infrastructure(kind, name)
        problem = check_infrastructure(before, resource)
        command = CreateInfrastructure(msgspec.to_builtins(resource))
        rendered = RenderedWorkload(infrastructure_key(kind, name), command, document=resource)
        reason = "unchanged" if before else "created"
        return CheckedItem(rendered, None, (problem,) if problem else (), audit_reason=reason)


def _with_new_secrets(action: WorkloadAction, checked: CheckedItem) -> Workload | None:
    """The workload, if its secrets may be new to it: of a deploy or a rollback. Others do not depend on the store."""
    is_rollback = isinstance(action, ApplyChange) and isinstance(action.change, Rollback)
    return checked.rendered.workload if is_rollback or checked.submitted else None

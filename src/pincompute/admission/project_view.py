"""Overview of a project for its members: owner, roles, policies, quota usage and unfinished workloads. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from pincompute.admission.authorization import highest_role, member_names
from pincompute.admission.quota import QuotaHoldings, quota_usage
from pincompute.api.custom_resource import FieldError
from pincompute.api.identity import Identity
from pincompute.api.membership import ProjectRole, ReviewMode
from pincompute.api.policy import Policy
from pincompute.api.policy_rules import policy_errors
from pincompute.api.project import Project, ProjectSpec
from pincompute.api.project_view import (
    ActiveOverride,
    PendingSubmission,
    PolicyView,
    ProjectSummary,
    ProjectView,
    TierUsage,
    UnfinishedWorkload,
)
from pincompute.api.workload import Workload
from pincompute.api.workload_summary import WorkloadSummary
from pincompute.objects.times import format_time
from pincompute.planning.break_glass import check_break_glass_expired
from pincompute.planning.expiry import own_expiry
from pincompute.planning.views.summary import summarize


class OutOfClusterState(NamedTuple):
    """State of a project that is not in its cluster: quota usage, platform policies and pending submissions."""

    quota_holdings: Mapping[str, QuotaHoldings]
    """By tier."""
    policies: Sequence[Policy] = ()
    """Policies of the platform."""
    pending_submissions: Sequence[PendingSubmission] = ()


def build_project_view(
    name: str, project: Project | None, workloads: Iterable[Workload], external: OutOfClusterState, now: datetime
) -> ProjectView:
    """The overview; for a namespace without a Project it has no owner, no members and no quota."""
    by_name = sorted(workloads, key=lambda each: each.metadata.name)
    spec = project.spec if project else ProjectSpec(owner="", review=ReviewMode.OPEN)
    expiry = own_expiry(project, now) if project else None
    return ProjectView(
        project=name,
        owner=spec.owner,
        contact=spec.contact,
        cost_centre=spec.cost_centre,
        description=spec.description,
        review=spec.review,
        expires=format_time(expiry.ends) if expiry else "",
        expired=expiry is not None and expiry.ends <= now,
        members={role: names for role in ProjectRole if (names := member_names(spec.members.holders_of(role)))},
        builders=sorted(spec.landing.builders) if spec.landing else [],
        hosts=sorted(spec.hosts),
        policies=[
            *_policy_views(external.policies, platform_wide=True),
            *_policy_views(spec.policies, platform_wide=False),
        ],
        quota=list(_tier_usages(spec, external.quota_holdings)),
        workload_counts=dict(sorted(Counter(each.kind for each in by_name).items())),
        overrides=[override for each in by_name if (override := _active_override(each, now))],
        unfinished=_unfinished_workloads([summarize(each) for each in by_name]),
        pending_submissions=list(external.pending_submissions),
    )


def visible_projects(projects: Mapping[str, Project], caller: Identity | None = None) -> list[ProjectSummary]:
    """The projects in which the caller has a role; all of them for platform administrators.

    Without a caller, all projects: the cluster's own RBAC has decided then which ones could be read.
    """
    with_role = [
        (project, highest_role(caller, project) if caller else None) for _, project in sorted(projects.items())
    ]
    return [
        ProjectSummary(
            project=project.metadata.name,
            owner=project.spec.owner,
            contact=project.spec.contact,
            review=project.spec.review,
            role=role,
        )
        for project, role in with_role
        if role or caller is None or caller.is_admin
    ]


def _policy_views(policies: Sequence[Policy], *, platform_wide: bool) -> Iterator[PolicyView]:
    """The policies with their errors. They were validated when they were submitted, but a client of the Kubernetes API
    can write others."""
    errors: dict[int, list[str]] = {}
    for error in policy_errors(policies, ()):
        errors.setdefault(int(error.path[0]), []).append(_error_text(error))
    for number, policy in enumerate(policies):
        yield PolicyView(
            name=policy.name,
            message=policy.message,
            kinds=policy.kinds,
            rule=policy.rule,
            platform_wide=platform_wide,
            errors=errors.get(number, []),
        )


def _error_text(error: FieldError) -> str:
    return f"{error.what}; {error.next}" if error.next else error.what


def _tier_usages(spec: ProjectSpec, holdings: Mapping[str, QuotaHoldings]) -> Iterator[TierUsage]:
    """Usage of each tier that the quota names, and of those that are used although it does not."""
    for tier, limits in spec.quota.by_priority_class().items():
        of_tier = holdings.get(tier, {})
        if limits is not None or any(of_tier.values()):
            yield TierUsage(tier=tier, usages=list(quota_usage(limits, of_tier)))


def _active_override(workload: Workload, now: datetime) -> ActiveOverride | None:
    override = workload.spec.break_glass
    if override is None:
        return None
    return ActiveOverride(
        name=workload.metadata.name,
        kind=workload.kind,
        until=override.until,
        by=override.by,
        because=override.because,
        overdue=check_break_glass_expired(workload, now) is not None,
    )


def _unfinished_workloads(summaries: Sequence[WorkloadSummary]) -> list[UnfinishedWorkload]:
    """Workloads that have not reached their goal, failed ones first."""
    unfinished = sorted((each for each in summaries if not each.done), key=lambda each: (not each.failed, each.name))
    return [
        UnfinishedWorkload(name=each.name, kind=each.kind, reason=each.reason, message=each.message, failed=each.failed)
        for each in unfinished
    ]

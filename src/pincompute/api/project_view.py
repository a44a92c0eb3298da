"""Project overview for its members: owner, roles, policies, quota usage, overrides, and unfinished workloads."""

from __future__ import annotations

from pincompute.api.membership import ProjectRole, ReviewMode
from pincompute.api.structs import LenientStruct


class QuotaConsumer(LenientStruct, frozen=True, omit_defaults=False):
    """A workload and its share of a quota."""

    name: str
    kind: str
    usage: str


class ResourceUsage(LenientStruct, frozen=True, omit_defaults=False):
    """Usage of one resource, formatted for display."""

    resource: str
    used: str
    limit: str = ""
    """Empty if unlimited."""
    remaining: str = ""
    used_share: float | None = None
    """Used fraction of the limit; above 1 if it is exceeded."""
    largest_consumers: list[QuotaConsumer] = []
    """Workloads with the highest usage, largest first."""


class TierUsage(LenientStruct, frozen=True, omit_defaults=False):
    tier: str
    usages: list[ResourceUsage] = []


class ActiveOverride(LenientStruct, frozen=True, omit_defaults=False):
    """An active emergency override."""

    name: str
    kind: str
    until: str
    by: str
    because: str
    overdue: bool


class UnfinishedWorkload(LenientStruct, frozen=True, omit_defaults=False):
    """A workload that has not reached its goal."""

    name: str
    kind: str
    reason: str
    message: str
    failed: bool


class PolicyView(LenientStruct, frozen=True, omit_defaults=False):
    """A policy that applies to the project's workloads."""

    name: str
    message: str
    kinds: list[str] = []
    """Kinds to which it applies; empty for all."""
    rule: str = ""
    platform_wide: bool = False
    """Set by the platform instead of the project."""
    errors: list[str] = []
    """Errors in the rule. An invalid policy rejects every workload."""


class PendingSubmission(LenientStruct, frozen=True, omit_defaults=False):
    """An accepted submission that is not yet in the cluster."""

    id: str
    name: str
    kind: str
    verb: str
    accepted_at: str
    caller: str
    attempts: int = 0
    last_delivery_error: str = ""
    """Error of the last delivery attempt."""


class ProjectView(LenientStruct, frozen=True, omit_defaults=False):
    project: str
    owner: str = ""
    contact: str = ""
    cost_centre: str = ""
    description: str = ""
    review: ReviewMode = ReviewMode.LANDED
    expires: str = ""
    """Time at which its workloads are stopped; empty if it never expires."""
    expired: bool = False
    members: dict[ProjectRole, list[str]] = {}
    builders: list[str] = []
    """Builders that may publish for the project."""
    hosts: list[str] = []
    """Custom hosts that its services may have."""
    policies: list[PolicyView] = []
    quota: list[TierUsage] = []
    workload_counts: dict[str, int] = {}
    """Number of workloads by kind."""
    overrides: list[ActiveOverride] = []
    unfinished: list[UnfinishedWorkload] = []
    pending_submissions: list[PendingSubmission] = []
    """Accepted submissions in order. Only the desk knows them."""


class ProjectSummary(LenientStruct, frozen=True, omit_defaults=False):
    """Entry of a project list."""

    project: str
    owner: str = ""
    contact: str = ""
    review: ReviewMode = ReviewMode.LANDED
    role: ProjectRole | None = None
    """Role of the caller; None for an administrator without membership."""

"""Quota decisions: does a workload fit into the quota of its project, and if not, which resource is short, by how much,
which workloads use most of it, and the owner to ask.

Pure. All amounts are those of `pincompute.planning.footprint`, so that the desk counts as the operator plans.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import floor
from typing import NamedTuple

import msgspec

from pincompute.admission.authorization import highest_role
from pincompute.api.identity import Identity
from pincompute.api.membership import ProjectRole
from pincompute.api.preview import Preview
from pincompute.api.project import Project, Quota, TierQuota
from pincompute.api.project_view import QuotaConsumer, ResourceUsage
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import QUOTA_TOO_SMALL, TIER_CLOSED
from pincompute.objects.quantity import format_bytes, format_cores, parse_quantity
from pincompute.planning.footprint import (
    EMPTY_FOOTPRINT,
    TIER_RESOURCES,
    Footprint,
    WorkloadKey,
    largest_footprint,
    objects_of,
    total_footprint,
)
from pincompute.planning.object_quota import STORAGE, object_limits

MAX_NAMED_HOLDERS = 3
"""Largest users of a resource that a message names."""

_RESOURCE_NAMES = {
    "cpu": "CPU",
    "memory": "memory",
    "gpus": "GPUs",
    "pods": "pods",
    "bytes": "object bytes",
    STORAGE: "storage",
    "config_maps": "ConfigMaps",
    "services": "Services",
    "service_accounts": "ServiceAccounts",
    "claims": "PersistentVolumeClaims",
    "jobs": "Jobs",
    "cron_jobs": "CronJobs",
    "ingresses": "Ingresses",
}


QuotaHoldings = Mapping[tuple[str, str], Footprint]
"""Footprint of each workload of a tier, by kind and name."""


class QuotaRequest(NamedTuple):
    """A workload and the footprint that it would have."""

    key: WorkloadKey
    project: Project | None
    """None for a namespace without a Project: its quota is unlimited."""
    requested: Footprint | None
    """None for a resource that uses no quota."""
    surge: int = 0
    """Requested pods that exist only during a rollout."""
    caller: Identity | None = None
    """Decides the advice of a refusal; None if unknown."""


class QuotaDecision(NamedTuple):
    """The problem, if the request does not fit, and the remaining quota of each limited resource."""

    problem: Problem | None = None
    remaining: tuple[str, ...] = ()


class QuotaDemand(NamedTuple):
    """The requested footprint of one workload, with the current usage of its tier."""

    name: str
    requested: Footprint
    current: Footprint
    """Footprint that the workload has already: in this tier, and the objects of all tiers."""
    used_by_others: Footprint
    """Sum over all other workloads, likewise."""
    surge: int = 0
    """Requested pods that exist only during a rollout."""
    caller: Identity | None = None


class Shortage(NamedTuple):
    """A resource of which too little quota is left."""

    resource: str
    limit: int
    used_by_others: int
    requested: int
    surge: int = 0

    @property
    def never_fits(self) -> bool:
        """Whether it would not fit either if no other workload ran."""
        return self.requested > self.limit

    def __str__(self) -> str:
        requested, used, limit, left = (
            _format_resource(self.resource, amount)
            for amount in (
                self.requested,
                self.used_by_others,
                self.limit,
                max(0, self.limit - self.used_by_others),
            )
        )
        asked = f"{_RESOURCE_NAMES[self.resource]}: {requested} requested{self._rollout_text()}"
        if self.never_fits:
            return f"{asked}, which never fits: the whole quota is {limit}"
        return f"{asked}, {limit} allowed, {used} used by other workloads, {left} left"

    def _rollout_text(self) -> str:
        if not self.surge:
            return ""
        replicas = self.requested - self.surge
        return f" ({replicas} replica{'s' if replicas > 1 else ''} and {self.surge} more during a rollout)"


def check_quota(
    request: QuotaRequest, usage: Mapping[str, QuotaHoldings], same_set: Collection[WorkloadKey] = ()
) -> QuotaDecision:
    """Decides a request against what its project uses now, by tier.

    Workloads of `same_set` were accepted just before with the same submission; a message marks them as such, since
    their names are not in any list yet.
    """
    key, project, requested, surge, caller = request
    if project is None or requested is None:
        return QuotaDecision()
    own = (key.kind, key.name)
    holdings = _relevant_holdings(usage, requested.tier)
    others = {holder: held for holder, held in holdings.items() if holder != own}
    current, used = holdings.get(own, EMPTY_FOOTPRINT), total_footprint(others.values())
    demand = QuotaDemand(key.name, requested, current, used, surge, caller)
    if problem := check_tier_open(project, demand):
        return QuotaDecision(problem)
    remaining, shortages = tuple(describe_remaining(project, demand)), find_shortages(project, demand)
    if not shortages:
        return QuotaDecision(remaining=remaining)
    resource = shortages[0].resource
    largest = sorted(others.items(), key=lambda item: (-getattr(item[1], resource), item[0]))
    in_set = {(each.kind, each.name) for each in same_set if each.project == key.project}
    named = [
        (f"{holder[1]}{' (same submission)' if holder in in_set else ''}", held)
        for holder, held in largest
        if getattr(held, resource)
    ]
    return QuotaDecision(_quota_exceeded(project, demand, shortages, named), remaining)


def _relevant_holdings(usage: Mapping[str, QuotaHoldings], tier: str) -> QuotaHoldings:
    """What each workload holds: of the tier its pods and their requests, of all tiers its objects and its storage."""
    found: dict[tuple[str, str], Footprint] = {}
    for of_tier, holdings in usage.items():
        for holder, held in holdings.items():
            counted = held if of_tier == tier else objects_of(held)
            found[holder] = largest_footprint((found.get(holder, counted), counted))
    return found


def check_quota_together(
    requests: Sequence[QuotaRequest | None], holdings: Mapping[str, Mapping[str, QuotaHoldings]]
) -> list[QuotaDecision]:
    """Decides the requests of one submission in order, each with the usage of those before it.

    `holdings` is by project and tier. None stands for a document that is not a workload and uses no quota.
    """
    usage = {project: {tier: dict(held) for tier, held in by_tier.items()} for project, by_tier in holdings.items()}
    accepted: list[WorkloadKey] = []
    decisions: list[QuotaDecision] = []
    for request in requests:
        if request is None:
            decisions.append(QuotaDecision())
            continue
        key, requested = request.key, request.requested
        of_project = usage.setdefault(key.project, {})
        decisions.append(check_quota(request, of_project, accepted))
        if requested is not None and decisions[-1].problem is None:
            own, tier = (key.kind, key.name), of_project.setdefault(requested.tier, {})
            # The old pods use their quota until the workload has been scaled down, so the larger of both counts.
            tier[own] = largest_footprint((requested, tier.get(own, EMPTY_FOOTPRINT)))
            accepted.append(key)
    return decisions


def add_quota_to_preview(preview: Preview, decision: QuotaDecision, problems: Iterable[Problem] = ()) -> Preview:
    """The preview with the remaining quota and with every problem that would reject the submission."""
    exceeded = (decision.problem,) if decision.problem else ()
    errors = [*(problem.json() for problem in (*problems, *exceeded)), *preview.errors]
    return msgspec.structs.replace(preview, quota_after=list(decision.remaining), errors=errors)


def check_tier_open(project: Project, demand: QuotaDemand) -> Problem | None:
    """Rejects a tier that the project's quota does not name."""
    tier = demand.requested.tier
    if not tier or project.spec.quota.by_priority_class().get(tier) is not None:
        return None
    usable = [name for name, limits in project.spec.quota.by_priority_class().items() if limits is not None]
    return Problem(
        TIER_CLOSED,
        f"project {project.metadata.name} has no quota for tier {tier}",
        Where(object=f"{project.metadata.name}/{demand.name}"),
        f"its quota names {' and '.join(usable)}",
        f"write tier: {usable[0]}, or {_larger_quota_advice(project, demand)}",
    )


def find_shortages(project: Project, demand: QuotaDemand) -> tuple[Shortage, ...]:
    """The resources that the demand exceeds.

    A demand that lowers the usage of a resource always passes, even above the limit: otherwise a workload could not be
    scaled down after the quota was reduced.
    """
    return tuple(_shortages(project.spec.quota, demand))


def describe_remaining(project: Project, demand: QuotaDemand) -> list[str]:
    """One line for each limited resource: usage of the workload, and what would be left."""
    tier = demand.requested.tier
    limits = project.spec.quota.by_priority_class().get(tier)
    if limits is None:
        return []
    return [_remaining_line(tier, resource, limit, demand) for resource, limit in _limits(limits)]


def quota_usage(limits: TierQuota | None, holdings: QuotaHoldings) -> Iterator[ResourceUsage]:
    """Usage of each resource that is limited or used, with the workloads that use the most."""
    limit_of = dict(_limits(limits)) if limits else {}
    for resource in TIER_RESOURCES:
        largest = sorted(holdings.items(), key=lambda item: (-getattr(item[1], resource), item[0]))
        used, limit = sum(getattr(usage, resource) for _, usage in largest), limit_of.get(resource)
        if limit is None and (not used or resource == "bytes"):
            continue
        yield ResourceUsage(
            resource=_RESOURCE_NAMES[resource],
            used=_format_resource(resource, used),
            limit="" if limit is None else _format_resource(resource, limit),
            remaining="" if limit is None else _format_resource(resource, max(0, limit - used)),
            used_share=None if not limit else used / limit,
            largest_consumers=[
                QuotaConsumer(name=name, kind=kind, usage=_format_resource(resource, getattr(usage, resource)))
                for (kind, name), usage in largest[:MAX_NAMED_HOLDERS]
                if getattr(usage, resource)
            ],
        )


def _remaining_line(tier: str, resource: str, limit: int, demand: QuotaDemand) -> str:
    requested, others = getattr(demand.requested, resource), getattr(demand.used_by_others, resource)
    amounts = (requested, max(0, limit - others - requested), limit)
    uses, left, allowed = (_format_resource(resource, amount) for amount in amounts)
    return f"{tier} {_RESOURCE_NAMES[resource]}: uses {uses}, {left} of {allowed} left"


def _quota_exceeded(
    project: Project, demand: QuotaDemand, shortages: Sequence[Shortage], largest: Sequence[tuple[str, Footprint]]
) -> Problem:
    """`largest` are the workloads that use the first short resource, in descending order."""
    resource = shortages[0].resource
    users = ", ".join(
        f"{name} {_format_resource(resource, getattr(usage, resource))}" for name, usage in largest[:MAX_NAMED_HOLDERS]
    )
    lines = [str(shortage) for shortage in shortages]
    if users:
        lines.append(f"largest users of {_RESOURCE_NAMES[resource]}: {users}")
    return Problem(
        QUOTA_TOO_SMALL,
        f"{demand.name} exceeds the {_quota_name(resource, demand)} quota of project {project.metadata.name}",
        Where(object=f"{project.metadata.name}/{demand.name}"),
        "\n".join(lines),
        f"{_smaller_demand_advice(shortages, largest)}, or {_larger_quota_advice(project, demand, resource)}",
    )


def _quota_name(resource: str, demand: QuotaDemand) -> str:
    """The field of the quota that limits a resource."""
    if resource in TIER_RESOURCES:
        return demand.requested.tier
    return STORAGE if resource == STORAGE else "objects"


def _smaller_demand_advice(shortages: Sequence[Shortage], users: Sequence[tuple[str, Footprint]]) -> str:
    """Freeing the quota of others does not help a workload that is larger than all of it."""
    if users and not any(each.never_fits for each in shortages):
        return "scale down or delete other workloads"
    return "request less"


def _larger_quota_advice(project: Project, demand: QuotaDemand, resource: str = "pods") -> str:
    """By the role of the caller: members ask the owner, and only administrators change a quota."""
    name, field = project.metadata.name, f"spec.quota.{_quota_name(resource, demand)}"
    if demand.caller is not None and demand.caller.is_admin:
        return f"raise {field}: kubectl edit project {name}"
    if demand.caller is not None and highest_role(demand.caller, project) is ProjectRole.OWNER:
        return f"have the infrastructure team raise {field} in the document of project {name}"
    return f"ask {project.spec.owner_text}, the owner of the project, for a larger quota"


def _shortages(quota: Quota, demand: QuotaDemand) -> Iterator[Shortage]:
    of_tier = quota.by_priority_class().get(demand.requested.tier)
    for resource, limit in (*(_limits(of_tier) if of_tier else ()), *object_limits(quota)):
        requested, current, others = (
            getattr(footprint, resource) for footprint in (demand.requested, demand.current, demand.used_by_others)
        )
        if requested > current and others + requested > limit:
            yield Shortage(resource, limit, others, requested, demand.surge if resource == "pods" else 0)


def _limits(limits: TierQuota) -> Iterator[tuple[str, int]]:
    """The limited resources, in the units of a Footprint; a resource that is left out is unlimited."""
    if limits.cpu != "":
        yield "cpu", floor(parse_quantity(limits.cpu) * 1000)
    for resource, size in (("memory", limits.memory), ("bytes", limits.bytes)):
        if size != "":
            yield resource, floor(parse_quantity(size))
    for resource, count in (("gpus", limits.gpus), ("pods", limits.pods)):
        if count is not None:
            yield resource, count


def _format_resource(resource: str, amount: int) -> str:
    if resource == "cpu":
        return format_cores(Fraction(amount, 1000))
    return format_bytes(Fraction(amount)) if resource in {"memory", "bytes", STORAGE} else str(amount)

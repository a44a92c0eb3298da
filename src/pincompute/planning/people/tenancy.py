"""All that is known of a project, put together for a person. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from pincompute.api.identity import Identity
from pincompute.api.membership import Review, Role
from pincompute.api.noun import Fault
from pincompute.api.policy import Policy, policy_faults
from pincompute.api.project import Project, ProjectSpec
from pincompute.api.summary import Summary
from pincompute.api.tenancy import Kept, OnItsWay, Tenancy, Tenant, TierUse, Unreviewed, Waiting
from pincompute.api.workload import Workload
from pincompute.planning.glass import overdue
from pincompute.planning.people.summary import summarize
from pincompute.planning.quotas.allowance import Holdings, use
from pincompute.planning.rights import named, role


class Beside(NamedTuple):
    """What is known of it that does not stand in its cluster."""

    held: Mapping[str, Holdings]
    """By tier."""
    policies: Sequence[Policy] = ()
    """The platform's own."""
    on_their_way: Sequence[OnItsWay] = ()


def tenancy(
    name: str, project: Project | None, workloads: Iterable[Workload], beside: Beside, now: datetime
) -> Tenancy:
    """A namespace that nobody has described is a project of no more than a name."""
    all_ = sorted(workloads, key=lambda each: each.metadata.name)
    spec = project.spec if project else ProjectSpec(owner="", review=Review.OPEN)
    return Tenancy(
        project=name,
        owner=spec.owner,
        contact=spec.contact,
        cost_centre=spec.cost_centre,
        review=spec.review,
        members={each: who for each in Role if (who := named(spec.members.of(each)))},
        builders=sorted(spec.landing.builders) if spec.landing else [],
        policies=[*_kept(beside.policies, of_platform=True), *_kept(spec.policies, of_platform=False)],
        quota=list(_quota(spec, beside.held)),
        kinds=dict(sorted(Counter(each.kind for each in all_).items())),
        glass=[found for each in all_ if (found := _glass(each, now))],
        waiting=_waiting([summarize(each) for each in all_]),
        on_their_way=list(beside.on_their_way),
    )


def tenants(projects: Mapping[str, Project], who: Identity | None = None) -> list[Tenant]:
    """Those in which somebody has a role, and all for whoever administers the platform; nobody is asked who they are
    where a cluster decides that itself."""
    found = [(each, role(who, each) if who else None) for _, each in sorted(projects.items())]
    return [
        Tenant(
            project=each.metadata.name,
            owner=each.spec.owner,
            contact=each.spec.contact,
            review=each.spec.review,
            role=has,
        )
        for each, has in found
        if has or who is None or who.administers
    ]


def _kept(policies: Sequence[Policy], *, of_platform: bool) -> Iterator[Kept]:
    """Somebody may have written them past all that reads them."""
    slips: dict[int, list[str]] = {}
    for fault in policy_faults(policies, ()):
        slips.setdefault(int(fault.path[0]), []).append(_slip(fault))
    for number, each in enumerate(policies):
        yield Kept(
            name=each.name,
            message=each.message,
            kinds=each.kinds,
            rule=each.rule,
            of_platform=of_platform,
            slips=slips.get(number, []),
        )


def _slip(fault: Fault) -> str:
    return f"{fault.what}; {fault.next}" if fault.next else fault.what


def _quota(spec: ProjectSpec, held: Mapping[str, Holdings]) -> Iterator[TierUse]:
    """Of the tiers that may be used, and of those that are used all the same."""
    for tier, bounds in spec.quota.by_class().items():
        holdings = held.get(tier, {})
        if bounds is not None or any(holdings.values()):
            yield TierUse(tier=tier, held=list(use(bounds, holdings)))


def _glass(each: Workload, now: datetime) -> Unreviewed | None:
    glass = each.spec.break_glass
    if glass is None:
        return None
    late = overdue(each, now) is not None
    return Unreviewed(
        name=each.metadata.name, kind=each.kind, until=glass.until, by=glass.by, because=glass.because, overdue=late
    )


def _waiting(summaries: Sequence[Summary]) -> list[Waiting]:
    """What has failed comes first."""
    there = sorted((each for each in summaries if not each.done), key=lambda each: (not each.failed, each.name))
    return [
        Waiting(name=each.name, kind=each.kind, reason=each.reason, message=each.message, failed=each.failed)
        for each in there
    ]

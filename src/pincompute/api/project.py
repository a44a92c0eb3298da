"""Project: an owner, members with roles, quota by tier and a review policy; it is a namespace of the same name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from pincompute.api.identity import RESERVED
from pincompute.api.landing import Landing
from pincompute.api.membership import Review, Role
from pincompute.api.names import INFRASTRUCTURE, NODES, PRIORITY, SYSTEM
from pincompute.api.noun import NAME_PATTERN, Fault, Noun, Rule, Spec
from pincompute.api.policy import Listed, policy_faults
from pincompute.api.status import READY, Report
from pincompute.api.wire import Strict, amount
from pincompute.api.workload import Tier

NOT_PROJECTS = ("default", SYSTEM, NODES)
"""Namespaces that a cluster needs for itself."""
KUBERNETES = "kube-"
"""Of namespaces that begin so, likewise."""

_Count = Annotated[int, Meta(ge=0, le=1_000_000)]
_Name = Annotated[str, Meta(min_length=1, max_length=128)]
_BARE = NAME_PATTERN[1:-1]


class Who(Strict, frozen=True):
    """Those who have a role."""

    people: Annotated[list[_Name], Meta(description="People, such as [ann, ben].", max_length=128)] = []
    groups: Annotated[list[_Name], Meta(description="Groups of people, such as [team-ads].", max_length=128)] = []
    programs: Annotated[
        list[Annotated[str, Meta(pattern=f"^({_BARE}/)?{_BARE}$", max_length=128)]],
        Meta(
            description="Workloads that ask as themselves, such as [ci] of this project or [build/ci] of another.",
            max_length=128,
        ),
    ] = []

    def each(self) -> Iterator[tuple[str, int, str]]:
        """Where it stands, and the name."""
        for sort, names in (("people", self.people), ("groups", self.groups), ("programs", self.programs)):
            yield from ((sort, index, name) for index, name in enumerate(names))

    def programs_of(self, project: str) -> Iterator[str]:
        """Each with the project that it is of."""
        return (name if "/" in name else f"{project}/{name}" for name in self.programs)


class Members(Strict, frozen=True):
    """Who may do what; nobody needs more than one role."""

    owner: Annotated[
        Who | None, Meta(description="Who also sees to its secrets and volumes, such as people: [ann].")
    ] = None
    deployer: Annotated[
        Who | None, Meta(description="Who also brings work in and restarts it, such as groups: [team-ads].")
    ] = None
    viewer: Annotated[
        Who | None, Meta(description="Who may only look, at everything but secrets, such as groups: [engineers].")
    ] = None

    def of(self, role: Role) -> Who | None:
        return {Role.OWNER: self.owner, Role.DEPLOYER: self.deployer, Role.VIEWER: self.viewer}[role]


class TierQuota(Strict, frozen=True):
    """How much all workloads of one tier may use together; what is not named is not bounded."""

    cpu: Annotated[int | str, amount("Processors, such as 400 or 500m; not bounded by default.")] = ""
    memory: Annotated[int | str, amount("Memory, such as 2Ti; not bounded by default.")] = ""
    gpus: Annotated[_Count | None, Meta(description="GPUs, such as 16; not bounded by default.")] = None
    pods: Annotated[_Count | None, Meta(description="Pods, such as 2000; not bounded by default.")] = None
    bytes: Annotated[
        int | str,
        amount("What all it becomes in a cluster takes up there, such as 64Mi; not bounded by default."),
    ] = ""


class Quota(Strict, frozen=True):
    """What a project may use. A tier that is not named may not be used; `{}` uses it without bounds."""

    reserved: Annotated[
        TierQuota | None, Meta(description="Work with capacity of its own, such as {cpu: 400}; none by default.")
    ] = None
    on_demand: Annotated[
        TierQuota | None, Meta(description="Work that runs while there is room, such as {cpu: 100}; none by default.")
    ] = msgspec.field(name=Tier.ON_DEMAND.value, default=None)
    preemptible: Annotated[
        TierQuota | None, Meta(description="Work that may be ended for other work, such as {}; none by default.")
    ] = None
    infrastructure: Annotated[
        TierQuota | None,
        Meta(
            description="Daemons of the infrastructure team, whose programs may have any right on a node, such as {}; "
            "none by default."
        ),
    ] = None
    storage: Annotated[
        int | str, amount("What all its volumes may hold together, such as 10Ti; not bounded by default.")
    ] = ""
    objects: Annotated[
        _Count | None,
        Meta(
            description="How many there may be of each: files of configuration, secrets, services, jobs and volumes, "
            "such as 2000; not bounded by default."
        ),
    ] = None

    def of(self, tier: Tier) -> TierQuota | None:
        return {Tier.RESERVED: self.reserved, Tier.ON_DEMAND: self.on_demand, Tier.PREEMPTIBLE: self.preemptible}[tier]

    def by_class(self) -> dict[str, TierQuota | None]:
        """Every priority class that a pod may have, without what all of them begin with."""
        return {
            **{tier.value: self.of(tier) for tier in Tier},
            INFRASTRUCTURE.removeprefix(PRIORITY): self.infrastructure,
        }


class ProjectSpec(Spec, frozen=True, kw_only=True):
    """Whose it is, who may do what in it, and how much of a cluster it may use."""

    owner: Annotated[str, Meta(description="Who answers for it, such as team-ads.", min_length=1, max_length=128)]
    contact: Annotated[
        str, Meta(description="Where its owner is reached, such as #ads-oncall or ads@example.com.", max_length=256)
    ] = ""
    cost_centre: Annotated[str, Meta(description="Who pays for it, such as 4711.", max_length=63)] = ""
    review: Annotated[
        Review,
        Meta(
            description="landed: only reviewed and landed work runs, and the desk alone brings it in; "
            "open: a deployer brings in anything. landed by default."
        ),
    ] = Review.LANDED
    landing: Annotated[
        Landing | None,
        Meta(description="Where what is reviewed and landed lies, and whose word counts; without it nothing is."),
    ] = None
    members: Annotated[Members, Meta(description="Who may do what, such as deployer: {groups: [ads]}.")] = Members()
    quota: Annotated[
        Quota,
        Meta(description="What it may use, such as on-demand: {cpu: 100}; a tier that is not named may not be used."),
    ] = Quota()
    callers: Annotated[
        list[Annotated[str, Meta(pattern=NAME_PATTERN, max_length=50)]],
        Meta(description="Other projects whose pods may reach in, such as [search]; none by default.", max_length=64),
    ] = []
    policies: Listed = []

    @property
    def whom(self) -> str:
        """Whom to ask."""
        return f"{self.owner} ({self.contact})" if self.contact else self.owner

    def faults(self, name: str) -> Iterator[Fault]:
        yield from super().faults(name)
        if not self.owner.strip():
            yield Fault(("owner",), "the owner is blank", next="owner: TEAM")
        if not any(bounds is not None for bounds in self.quota.by_class().values()):
            yield Fault(
                ("quota",),
                "no tier is named, so that nothing could ever run",
                f"the tiers are {', '.join(Tier)}",
                "quota: {on-demand: {}}",
            )
        yield from _member_faults(self.members)
        if self.landing:
            yield from self.landing.faults(("landing",))
        for index, caller in enumerate(self.callers):
            if caller == name:
                yield Fault(("callers", index), f"{name} always reaches itself", next="leave it out")
        yield from policy_faults(self.policies, ("policies",))


def _member_faults(members: Members) -> Iterator[Fault]:
    """Each stands once, and none is one of Kubernetes' own."""
    before: dict[tuple[str, str], Role] = {}
    for role in Role:
        who = members.of(role)
        if who and not any(who.each()):
            yield Fault(("members", role.value), f"{role} names nobody", next="people: [NAME], or leave it out")
        for sort, index, name in who.each() if who else ():
            path = ("members", role.value, sort, index)
            if not name.strip() or name.startswith(RESERVED):
                yield Fault(path, f"'{name}' cannot be a member", f"names in {RESERVED} are Kubernetes' own")
            if (sort, name) in before:
                yield Fault(
                    path,
                    f"{name} is {before[sort, name]} already",
                    "one role is enough: an owner may do what a deployer may, a deployer what a viewer may",
                    "leave one out",
                )
            before.setdefault((sort, name), role)


class ProjectStatus(Report, frozen=True):
    """What the operator last saw of a project."""


class Project(Noun, frozen=True, kw_only=True, rename=None):
    """An owner, members with roles, quota by tier and a review policy."""

    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("prj",)
    COLUMNS: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("Owner", "string", ".spec.owner"),
        ("Contact", "string", ".spec.contact"),
        ("Review", "string", ".spec.review"),
        ("Ready", "string", '.status.conditions[?(@.type=="Ready")].status'),
        ("Reason", "string", '.status.conditions[?(@.type=="Ready")].reason'),
        ("Age", "date", ".metadata.creationTimestamp"),
    )
    CLUSTER_WIDE: ClassVar[bool] = True
    GOAL: ClassVar[str] = READY
    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            f"!(self.metadata.name in {list(NOT_PROJECTS)}) && !self.metadata.name.startsWith('{KUBERNETES}')",
            "this namespace is the cluster's own and cannot be a project",
        ),
        Rule(
            "has(self.spec.quota) && (has(self.spec.quota.reserved) || has(self.spec.quota.on__dash__demand)"
            " || has(self.spec.quota.preemptible) || has(self.spec.quota.infrastructure))",
            "spec.quota names no tier, so that nothing could ever run: quota: {on-demand: {}}",
        ),
    )

    spec: ProjectSpec
    status: ProjectStatus = ProjectStatus()
    kind: str = "Project"

    @classmethod
    def name_faults(cls, name: str) -> Iterator[Fault]:
        if name in NOT_PROJECTS or name.startswith(KUBERNETES):
            yield Fault(("metadata", "name"), f"{name} is a namespace of the cluster's own", next="choose another name")

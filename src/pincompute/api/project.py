"""Project: owner, members with roles, quota by tier and review mode. It becomes a namespace of the same name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from pincompute.api.custom_resource import NAME_PATTERN, CustomResource, FieldError, Spec, ValidationRule
from pincompute.api.expiry import Expires, expiry_errors
from pincompute.api.hosts import LISTED_HOST_PATTERN
from pincompute.api.identity import KUBERNETES_NAME_PREFIX
from pincompute.api.ingress import IngressGrants
from pincompute.api.landing import Landing
from pincompute.api.membership import ProjectRole, ReviewMode
from pincompute.api.names import INFRASTRUCTURE_PRIORITY_CLASS, NODES_NAMESPACE, PRIORITY_CLASS_PREFIX, SYSTEM_NAMESPACE
from pincompute.api.policy import PolicyList
from pincompute.api.status import READY, ResourceStatus
from pincompute.api.structs import StrictStruct, quantity_meta
from pincompute.api.workload import Tier

RESERVED_NAMESPACES = ("default", SYSTEM_NAMESPACE, NODES_NAMESPACE)
"""Namespaces that a cluster needs for itself."""
_RESERVED_AUDIENCES = ("https://kubernetes.default", "kubernetes.default", "pincompute")
"""Prefixes of the audiences of API servers and of the desk."""
KUBERNETES_NAMESPACE_PREFIX = "kube-"
"""Prefix of further reserved namespaces."""

_Count = Annotated[int, Meta(ge=0, le=1_000_000)]
_Name = Annotated[str, Meta(min_length=1, max_length=128)]
_Audience = Annotated[str, Meta(min_length=1, max_length=256)]
_NAME_WITHOUT_ANCHORS = NAME_PATTERN[1:-1]
_TAINT_KEY_PATTERN = "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
_CLASS_NAME_PATTERN = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"


class RoleHolders(StrictStruct, frozen=True):
    """Holders of one role."""

    people: Annotated[list[_Name], Meta(description="Users, such as [ann, ben].", max_length=128)] = []
    groups: Annotated[list[_Name], Meta(description="Groups of users, such as [team-ads].", max_length=128)] = []
    programs: Annotated[
        list[Annotated[str, Meta(pattern=f"^({_NAME_WITHOUT_ANCHORS}/)?{_NAME_WITHOUT_ANCHORS}$", max_length=128)]],
        Meta(
            description="Workloads that call the API with their own identity, such as [ci] of this project or "
            "[build/ci] of another.",
            max_length=128,
        ),
    ] = []

    def entries(self) -> Iterator[tuple[str, int, str]]:
        """Field, index and name of each holder."""
        for field, names in (("people", self.people), ("groups", self.groups), ("programs", self.programs)):
            yield from ((field, index, name) for index, name in enumerate(names))

    def qualified_programs(self, project: str) -> Iterator[str]:
        """Programs as `project/workload`."""
        return (name if "/" in name else f"{project}/{name}" for name in self.programs)


class Members(StrictStruct, frozen=True):
    """Members by role. Roles include the lesser ones, so that one role is enough for a member."""

    owner: Annotated[
        RoleHolders | None,
        Meta(description="Owners: deployers who can also manage secrets and volumes, such as people: [ann]."),
    ] = None
    deployer: Annotated[
        RoleHolders | None,
        Meta(description="Deployers: viewers who can also deploy and restart workloads, such as groups: [team-ads]."),
    ] = None
    viewer: Annotated[
        RoleHolders | None,
        Meta(description="Viewers: read access to everything except secrets, such as groups: [engineers]."),
    ] = None

    def holders_of(self, role: ProjectRole) -> RoleHolders | None:
        return {ProjectRole.OWNER: self.owner, ProjectRole.DEPLOYER: self.deployer, ProjectRole.VIEWER: self.viewer}[
            role
        ]


class TierQuota(StrictStruct, frozen=True):
    """Quota of all workloads of one tier together. Resources that are left out are unlimited."""

    cpu: Annotated[int | str, quantity_meta("CPU cores, such as 400 or 500m; unlimited by default.")] = ""
    memory: Annotated[int | str, quantity_meta("Memory, such as 2Ti; unlimited by default.")] = ""
    gpus: Annotated[_Count | None, Meta(description="GPUs, such as 16; unlimited by default.")] = None
    pods: Annotated[_Count | None, Meta(description="Pods, such as 2000; unlimited by default.")] = None
    bytes: Annotated[
        int | str,
        quantity_meta("Size of all Kubernetes objects in the cluster's database, such as 64Mi; unlimited by default."),
    ] = ""


class Quota(StrictStruct, frozen=True):
    """Quota of a project. A tier that is left out cannot be used; `{}` means unlimited."""

    reserved: Annotated[
        TierQuota | None,
        Meta(description="Reserved tier, with guaranteed capacity, such as {cpu: 400}; not usable by default."),
    ] = None
    on_demand: Annotated[
        TierQuota | None,
        Meta(
            description="On-demand tier, for work that runs while capacity is available, such as {cpu: 100}; not "
            "usable by default."
        ),
    ] = msgspec.field(name=Tier.ON_DEMAND.value, default=None)
    preemptible: Annotated[
        TierQuota | None,
        Meta(
            description="Preemptible tier, for work that may be ended in favour of other work, such as {}; not "
            "usable by default."
        ),
    ] = None
    infrastructure: Annotated[
        TierQuota | None,
        Meta(
            description="Infrastructure daemons, which may use every privilege on a node, such as {}; not usable by "
            "default."
        ),
    ] = None
    storage: Annotated[int | str, quantity_meta("Total size of volumes, such as 10Ti; unlimited by default.")] = ""
    ephemeral_storage: Annotated[
        int | str,
        quantity_meta(
            "Most that one container may write to the node's disk (its files, its logs and emptyDir volumes), such as "
            "500Gi; 200Gi by default, and 50Gi without a limit of its own."
        ),
    ] = ""
    objects: Annotated[
        _Count | None,
        Meta(
            description="Maximum number of objects of each type (ConfigMaps, Secrets, Services, Ingresses, Jobs, "
            "CronJobs, service accounts, claims), such as 2000; 10000 by default, and 1000 Services."
        ),
    ] = None

    def tier_quota(self, tier: Tier) -> TierQuota | None:
        return {Tier.RESERVED: self.reserved, Tier.ON_DEMAND: self.on_demand, Tier.PREEMPTIBLE: self.preemptible}[tier]

    def by_priority_class(self) -> dict[str, TierQuota | None]:
        """Quota of each priority class, by name without the common prefix."""
        return {
            **{tier.value: self.tier_quota(tier) for tier in Tier},
            INFRASTRUCTURE_PRIORITY_CLASS.removeprefix(PRIORITY_CLASS_PREFIX): self.infrastructure,
        }


class Placement(StrictStruct, frozen=True):
    """What the pods of a project may ask of nodes beyond labels and resources."""

    tolerations: Annotated[
        list[Annotated[str, Meta(pattern=_TAINT_KEY_PATTERN, max_length=317)]],
        Meta(description="Keys of taints that pods may tolerate, such as [dedicated]; none by default.", max_length=32),
    ] = []
    runtime_classes: Annotated[
        list[Annotated[str, Meta(pattern=_CLASS_NAME_PATTERN, max_length=253)]],
        Meta(
            description="Runtime classes that pods may use, such as [gvisor]; the node's default only by default.",
            max_length=32,
        ),
    ] = []


class ProjectSpec(Spec, frozen=True, kw_only=True):
    """Owner, members, review mode and quota of a project."""

    owner: Annotated[str, Meta(description="Owner, such as team-ads.", min_length=1, max_length=128)]
    contact: Annotated[
        str, Meta(description="Contact of the owner, such as #ads-oncall or ads@example.com.", max_length=256)
    ] = ""
    cost_centre: Annotated[str, Meta(description="Cost centre, such as 4711.", max_length=63)] = ""
    description: Annotated[
        str, Meta(description="What the project is for, such as ranking of ads.", max_length=1024)
    ] = ""
    review: Annotated[
        ReviewMode,
        Meta(
            description="landed: only reviewed and landed builds run, and only the desk submits them; open: "
            "deployers may submit any file. landed by default."
        ),
    ] = ReviewMode.LANDED
    landing: Annotated[
        Landing | None,
        Meta(
            description="Review policy: repository, branch, builders and reviewers. Required for builds to count as "
            "reviewed, such as {repository: URL, builders: {NAME: KEY}}."
        ),
    ] = None
    members: Annotated[Members, Meta(description="Members by role, such as deployer: {groups: [ads]}.")] = Members()
    quota: Annotated[
        Quota,
        Meta(description="Quota by tier, such as on-demand: {cpu: 100}; a tier that is left out cannot be used."),
    ] = Quota()
    callers: Annotated[
        list[Annotated[str, Meta(pattern=NAME_PATTERN, max_length=50)]],
        Meta(
            description="Other projects whose pods may connect to this one, such as [search]; none by default.",
            max_length=64,
        ),
    ] = []
    hosts: Annotated[
        list[Annotated[str, Meta(pattern=LISTED_HOST_PATTERN, max_length=253)]],
        Meta(
            description="Custom hosts that its services may have beside NAME.PROJECT.DOMAIN, such as "
            "[shop.example.com, *.shop.example.com]; none by default.",
            max_length=256,
        ),
    ] = []
    placement: Annotated[
        Placement,
        Meta(description="Taints and runtime classes that are open to its pods, such as {tolerations: [dedicated]}."),
    ] = Placement()
    ingress: Annotated[
        IngressGrants,
        Meta(
            description="Annotations and certificate issuers that are open to its services, such as {issuers: "
            "{letsencrypt: ClusterIssuer}}."
        ),
    ] = IngressGrants()
    iam_roles: Annotated[
        dict[str, _Audience],
        Meta(
            description="IAM roles in the cloud that its workloads may name as iamRole, each with the audience of "
            "their tokens, such as {ads-reader: sts.amazonaws.com}; none by default.",
            max_length=64,
        ),
    ] = {}
    policies: PolicyList = []
    expires: Expires = ""

    @property
    def owner_text(self) -> str:
        """The owner with contact, for messages."""
        return f"{self.owner} ({self.contact})" if self.contact else self.owner

    def field_errors(self, name: str) -> Iterator[FieldError]:
        yield from super().field_errors(name)
        if not self.owner.strip():
            yield FieldError(("owner",), "the owner is blank", next="owner: TEAM")
        if not any(bounds is not None for bounds in self.quota.by_priority_class().values()):
            yield FieldError(
                ("quota",),
                "the quota names no tier, so that no workload could run",
                f"tiers: {', '.join(Tier)}",
                "quota: {on-demand: {}}",
            )
        yield from expiry_errors(self.expires)
        yield from _member_errors(self.members)
        if self.landing:
            yield from self.landing.field_errors(("landing",))
        for index, caller in enumerate(self.callers):
            if caller == name:
                what = f"{name} is this project: its pods can always connect to each other"
                yield FieldError(("callers", index), what, next="remove it")
        yield from self.ingress.field_errors(("ingress",))
        for role, audience in self.iam_roles.items():
            if audience.startswith(_RESERVED_AUDIENCES) or not audience.isprintable():
                what = f"'{audience}' cannot be the audience of a cloud"
                note = "tokens for it are accepted by the cluster or by the platform"
                yield FieldError(("iamRoles", role), what, note, "such as sts.amazonaws.com")
        for index, host in enumerate(self.hosts):
            if host in self.hosts[:index]:
                yield FieldError(("hosts", index), f"{host} is listed twice", next="remove one")


def _member_errors(members: Members) -> Iterator[FieldError]:
    """Members that are listed twice, and names that are reserved for Kubernetes."""
    roles: dict[tuple[str, str], ProjectRole] = {}
    for role in ProjectRole:
        holders = members.holders_of(role)
        if holders and not any(holders.entries()):
            yield FieldError(("members", role.value), f"{role} has no members", next="people: [NAME], or leave it out")
        for field, index, name in holders.entries() if holders else ():
            path = ("members", role.value, field, index)
            if not name.strip() or name.startswith(KUBERNETES_NAME_PREFIX):
                yield FieldError(
                    path,
                    f"'{name}' cannot be a member",
                    f"names with the prefix {KUBERNETES_NAME_PREFIX} are reserved by Kubernetes",
                )
            if (field, name) in roles:
                yield FieldError(
                    path,
                    f"{name} already has the role {roles[field, name]}",
                    "roles are inclusive: owners have the rights of deployers, and deployers those of viewers",
                    "remove one",
                )
            roles.setdefault((field, name), role)


class ProjectStatus(ResourceStatus, frozen=True):
    """Status of a project."""


class Project(CustomResource, frozen=True, kw_only=True, rename=None):
    """Owner, members with roles, quota by tier and review mode."""

    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("prj",)
    PRINTER_COLUMNS: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("Owner", "string", ".spec.owner"),
        ("Contact", "string", ".spec.contact"),
        ("Review", "string", ".spec.review"),
        ("Ready", "string", '.status.conditions[?(@.type=="Ready")].status'),
        ("Reason", "string", '.status.conditions[?(@.type=="Ready")].reason'),
        ("Age", "date", ".metadata.creationTimestamp"),
    )
    CLUSTER_SCOPED: ClassVar[bool] = True
    GOAL: ClassVar[str] = READY
    VALIDATION_RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            f"!(self.metadata.name in {list(RESERVED_NAMESPACES)}) && "
            f"!self.metadata.name.startsWith('{KUBERNETES_NAMESPACE_PREFIX}')",
            "this namespace is reserved by the cluster and cannot be a project",
        ),
        ValidationRule(
            "has(self.spec.quota) && (has(self.spec.quota.reserved) || has(self.spec.quota.on__dash__demand)"
            " || has(self.spec.quota.preemptible) || has(self.spec.quota.infrastructure))",
            "spec.quota must name at least one tier: quota: {on-demand: {}}",
        ),
    )

    spec: ProjectSpec
    status: ProjectStatus = ProjectStatus()
    kind: str = "Project"

    @classmethod
    def reserved_name_errors(cls, name: str) -> Iterator[FieldError]:
        if name in RESERVED_NAMESPACES or name.startswith(KUBERNETES_NAMESPACE_PREFIX):
            yield FieldError(
                ("metadata", "name"), f"{name} is a namespace reserved by the cluster", next="choose another name"
            )

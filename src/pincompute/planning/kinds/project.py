"""Plans a Project: a namespace with quotas by tier, role bindings for its members, and network policies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pincompute.api.membership import ProjectRole, ReviewMode
from pincompute.api.names import (
    CALLERS_LABEL,
    CONTACT_ANNOTATION,
    DESCRIPTION_ANNOTATION,
    HOSTS_ANNOTATION,
    INGRESS_LABEL,
    KIND_LABEL,
    METRICS_NAMESPACE_LABEL,
    METRICS_PORT_NAME,
    PRIORITY_CLASS_PREFIX,
    PROJECT_LABEL,
    REVIEW_LABEL,
    RUNTIME_CLASSES_ANNOTATION,
    STATSD_PORT_NAME,
    SYSTEM_NAMESPACE,
    TOLERATIONS_ANNOTATION,
)
from pincompute.api.policy_rules import policy_errors
from pincompute.api.project import Project, ProjectStatus, RoleHolders, TierQuota
from pincompute.api.status import READY
from pincompute.base import reasons
from pincompute.base.problem import Problem, Where
from pincompute.objects.content import Object, object_label
from pincompute.objects.quantity import parse_quantity
from pincompute.planning import names, natives, status
from pincompute.planning.expiry import check_expires_field, report_project_expiry
from pincompute.planning.object_quota import object_quota
from pincompute.planning.plan import Plan
from pincompute.planning.pods.container import EPHEMERAL_STORAGE
from pincompute.planning.pods.pod import DEFAULT_CPU, DEFAULT_MEMORY, GPU_RESOURCE
from pincompute.planning.pods.security_level import security_level
from pincompute.planning.quota_status import quota_problem, uncounted_quota
from pincompute.planning.snapshot import Native, Snapshot

_RBAC_GROUP = "rbac.authorization.k8s.io"
_DEFAULT_EPHEMERAL_LIMIT = "50Gi"
_MAX_EPHEMERAL_LIMIT = "200Gi"
_NO_PODS = {"pods": "0"}
_ALL_PODS: Object = {}
_WITHOUT_CALLERS: Object = {"matchExpressions": [{"key": CALLERS_LABEL, "operator": "DoesNotExist"}]}
"""Selects the pods of workloads without `callers`: the others have a policy of their own."""
_METRICS = (METRICS_PORT_NAME, STATSD_PORT_NAME)
_METADATA_ADDRESSES = {"0.0.0.0/0": "169.254.169.254/32", "::/0": "fd00:ec2::254/128"}
"""Addresses at which cloud providers serve the metadata of a machine, below the range of all addresses."""


def plan(snapshot: Snapshot) -> Plan:
    """Plan the namespace, and its content once the namespace exists.

    The two stages matter: if a namespace of that name belongs to another owner, the members must get no permissions
    in it.
    """
    owner: Project = snapshot.owner
    existing = tuple((each.kind, each.metadata.name) for each in snapshot.natives)
    namespace = next((each for each in snapshot.natives if each.kind == "Namespace"), None)
    if namespace is None or namespace.metadata.controller_uid != owner.metadata.uid:
        waiting = "namespace not created yet"
        return Plan(
            (_namespace(owner),), _project_status(snapshot, None, waiting), retained=existing, has_next_stage=True
        )
    if namespace.metadata.deletion_timestamp or namespace.status.phase == "Terminating":
        problem = _terminating_problem(owner, namespace)
        return Plan((), _project_status(snapshot, problem), why=problem, retained=existing)
    quotas = _quotas(owner)
    wanted = (_namespace(owner), *quotas, _limit_range(owner), *_role_bindings(owner), *_network_policies(owner))
    waiting = _missing_object(wanted, existing) or uncounted_quota(quotas, snapshot.natives)
    problem = None
    if not waiting:
        problem = (
            _policy_problem(owner)
            or check_expires_field(owner)
            or quota_problem(owner.metadata.name, quotas, snapshot.natives)
        )
    return report_project_expiry(Plan(wanted, _project_status(snapshot, problem, waiting), why=problem), snapshot)


def _policy_problem(owner: Project) -> Problem | None:
    """First invalid policy. While there is one, the desk rejects all submissions, so that it is reported here, too."""
    policies = owner.spec.policies
    for (index, *_), what, note, next_ in policy_errors(policies, ()):
        name = owner.metadata.name
        message = f"policy {policies[int(index)].name} of project {name} is invalid: {what}"
        fix = next_ or f"fix it: kubectl edit project {name}"
        return Problem(reasons.POLICY_INVALID, message, Where(object=f"project {name}"), note, fix)
    return None


def _namespaced(owner: Project, api_version: str, kind: str, name: str, body: Object) -> Object:
    """Build an object in the project's namespace."""
    return natives.build_owned(
        owner, api_version, kind, {**_metadata(owner, name), "namespace": owner.metadata.name}, body
    )


def _metadata(owner: Project, name: str) -> Object:
    return {
        "name": name,
        "labels": {PROJECT_LABEL: owner.metadata.name, KIND_LABEL: owner.kind},
        "annotations": natives.owner_annotations(owner.spec.owner, owner.spec.cost_centre),
    }


def _namespace(owner: Project) -> Object:
    """Namespace with the Pod Security level "restricted", except for projects that may run infrastructure daemons."""
    metadata = _metadata(owner, owner.metadata.name)
    metadata["labels"] |= {
        "pod-security.kubernetes.io/enforce": security_level(owner),
        REVIEW_LABEL: str(owner.spec.review),
    }
    placement = owner.spec.placement
    annotations = {
        CONTACT_ANNOTATION: owner.spec.contact,
        DESCRIPTION_ANNOTATION: owner.spec.description,
        HOSTS_ANNOTATION: " ".join(sorted(owner.spec.hosts)),
        TOLERATIONS_ANNOTATION: " ".join(sorted(set(placement.tolerations))),
        RUNTIME_CLASSES_ANNOTATION: " ".join(sorted(set(placement.runtime_classes))),
    }
    metadata["annotations"] |= {name: value for name, value in annotations.items() if value}
    return natives.build_owned(owner, "v1", "Namespace", metadata, {})


def _quotas(owner: Project) -> tuple[Object, ...]:
    """Quotas by priority class, with none for tiers that are not listed and for pods without a tier."""
    quota = owner.spec.quota
    by_class = quota.by_priority_class()
    hard = {
        **{name: _tier_limits(tier_quota) for name, tier_quota in by_class.items()},
        names.NO_TIER: _NO_PODS,
        names.OBJECTS: _set_limits(object_quota(quota)),
    }
    scopes = {**{name: _scope("In", [name]) for name in by_class}, names.NO_TIER: _scope("NotIn", by_class)}
    return tuple(
        _namespaced(owner, "v1", "ResourceQuota", name, {"spec": {"hard": limits, **scopes.get(name, {})}})
        for name, limits in hard.items()
        if limits
    )


def _limit_range(owner: Project) -> Object:
    """Requests and limits of containers that set none, and the most that one may write to the disk of its node.

    CPU has no default limit: it would slow containers down that have room. The default request of disk space is 0,
    because Kubernetes would otherwise use the limit as the request.
    """
    most = owner.spec.quota.ephemeral_storage or _MAX_EPHEMERAL_LIMIT
    default = min(_DEFAULT_EPHEMERAL_LIMIT, str(most), key=parse_quantity)
    container = {
        "type": "Container",
        "default": {EPHEMERAL_STORAGE: default},
        "defaultRequest": {"cpu": DEFAULT_CPU, "memory": DEFAULT_MEMORY, EPHEMERAL_STORAGE: "0"},
        "max": {EPHEMERAL_STORAGE: str(most)},
    }
    return _namespaced(owner, "v1", "LimitRange", names.CONTAINERS, {"spec": {"limits": [container]}})


def _tier_limits(quota: TierQuota | None) -> Object:
    if quota is None:
        return _NO_PODS
    return _set_limits(
        {
            "requests.cpu": quota.cpu,
            "requests.memory": quota.memory,
            f"requests.{GPU_RESOURCE}": quota.gpus,
            "pods": quota.pods,
        }
    )


def _scope(operator: str, tiers: Iterable[str]) -> Object:
    classes = [f"{PRIORITY_CLASS_PREFIX}{name}" for name in tiers]
    return {
        "scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": operator, "values": classes}]}
    }


def _set_limits(hard: Object) -> Object:
    """Drop resources without a limit. 0 is a limit."""
    return {name: str(value) for name, value in hard.items() if value not in ("", None)}


def _role_bindings(owner: Project) -> tuple[Object, ...]:
    """Role bindings; each role includes those below it.

    If only reviewed work may run, no member may create workloads without the desk, which checks the review.
    """
    members = owner.spec.members
    owners, deployers, viewers = ([members.holders_of(role)] for role in ProjectRole)
    holders_by_role = {
        ProjectRole.OWNER.value: owners,
        ProjectRole.DEPLOYER.value: owners + deployers,
        ProjectRole.VIEWER.value: owners + deployers + viewers,
        names.SUBMITTER: owners + deployers if owner.spec.review is ReviewMode.OPEN else [],
    }
    bindings = ((role, _subjects(owner.metadata.name, holders)) for role, holders in holders_by_role.items())
    return tuple(_role_binding(owner, role, subjects) for role, subjects in bindings if subjects)


def _role_binding(owner: Project, role: str, subjects: list[Object]) -> Object:
    reference = {"apiGroup": _RBAC_GROUP, "kind": "ClusterRole", "name": names.project_role(role)}
    return _namespaced(owner, f"{_RBAC_GROUP}/v1", "RoleBinding", role, {"roleRef": reference, "subjects": subjects})


def _subjects(project: str, role_holders: Iterable[RoleHolders | None]) -> list[Object]:
    """Subjects of a role binding. A program is identified by the ServiceAccount of its workload."""
    holders = [each for each in role_holders if each]
    people = sorted({name for each in holders for name in each.people})
    groups = sorted({name for each in holders for name in each.groups})
    named = [*(("User", name) for name in people), *(("Group", name) for name in groups)]
    programs = sorted({tuple(name.split("/")) for each in holders for name in each.qualified_programs(project)})
    return [
        *({"apiGroup": _RBAC_GROUP, "kind": kind, "name": name} for kind, name in named),
        *({"kind": "ServiceAccount", "namespace": namespace, "name": name} for namespace, name in programs),
    ]


def _network_policies(owner: Project) -> tuple[Object, ...]:
    """Policies for each source, as the rules of one have no names, and for egress, which only the metadata of cloud
    providers is excluded from: it gives credentials of the node to whoever asks."""
    system = {"key": names.NAMESPACE_NAME_LABEL, "operator": "In", "values": ["kube-system", SYSTEM_NAMESPACE]}
    return (
        _ingress_policy(owner, names.FROM_PROJECT, {"podSelector": {}}, receivers=_WITHOUT_CALLERS),
        _ingress_policy(owner, names.FROM_SYSTEM, _namespaces(matchExpressions=[system])),
        _ingress_policy(owner, names.FROM_INGRESS, _namespaces(matchLabels={INGRESS_LABEL: "true"})),
        _ingress_policy(
            owner, names.FROM_METRICS, _namespaces(matchLabels={METRICS_NAMESPACE_LABEL: "true"}), _METRICS
        ),
        *((_from_callers_policy(owner),) if owner.spec.callers else ()),
        _egress_policy(owner),
    )


def _from_callers_policy(owner: Project) -> Object:
    callers = {"key": PROJECT_LABEL, "operator": "In", "values": sorted(set(owner.spec.callers))}
    peer = _namespaces(matchExpressions=[callers])
    return _ingress_policy(owner, names.FROM_CALLERS, peer, receivers=_WITHOUT_CALLERS)


def _ingress_policy(
    owner: Project, name: str, peer: Object, ports: Sequence[str] = (), *, receivers: Object = _ALL_PODS
) -> Object:
    """Policy for all ports, or for those with these names, which differ in their number from pod to pod."""
    rule: Object = {"from": [peer]}
    if ports:
        rule["ports"] = [{"port": each, "protocol": "TCP"} for each in ports]
    spec: Object = {"podSelector": receivers, "policyTypes": ["Ingress"], "ingress": [rule]}
    return _namespaced(owner, "networking.k8s.io/v1", "NetworkPolicy", name, {"spec": spec})


def _egress_policy(owner: Project) -> Object:
    blocks = [{"ipBlock": {"cidr": every, "except": [metadata]}} for every, metadata in _METADATA_ADDRESSES.items()]
    # Some implementations match pods by selectors only.
    spec: Object = {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"to": [_namespaces(), *blocks]}]}
    return _namespaced(owner, "networking.k8s.io/v1", "NetworkPolicy", names.TO_ALL_BUT_METADATA, {"spec": spec})


def _namespaces(**selector: Any) -> Object:
    return {"namespaceSelector": selector}


def _terminating_problem(owner: Project, namespace: Native) -> Problem:
    """Problem of a namespace that is being deleted, with the objects it waits for."""
    remaining = [each.message for each in namespace.status.conditions if each.status == "True" and each.message]
    name = owner.metadata.name
    return Problem(
        reasons.PROJECT_TERMINATING,
        f"namespace {name} is being deleted with all its content",
        Where(object=f"namespace {name}"),
        "; ".join(sorted(remaining)),
        f"list what remains: kubectl get pinterest,pods,persistentvolumeclaims -n {name}",
    )


def _missing_object(wanted: Iterable[Object], existing: Iterable[tuple[str, str]]) -> str:
    present = set(existing)
    missing = [object_label(each) for each in wanted if (each["kind"], each["metadata"]["name"]) not in present]
    return f"{missing[0]} not created yet" if missing else ""


def _project_status(snapshot: Snapshot, problem: Problem | None, waiting: str = "") -> ProjectStatus:
    """A used-up quota and an invalid policy are reported, but the project stays ready: only a deletion ends that."""
    if waiting:
        condition = status.build_condition(snapshot, READY, reasons.PROGRESSING, waiting, status=False)
    elif problem:
        ready = problem.reason is not reasons.PROJECT_TERMINATING
        condition = status.build_condition(snapshot, READY, problem.reason, problem.message(), status=ready)
    else:
        condition = status.build_condition(snapshot, READY, reasons.AVAILABLE, "accepts workloads", status=True)
    generation = snapshot.owner.metadata.generation
    return ProjectStatus(observed_generation=generation, next=problem.next if problem else "", conditions=[condition])

"""What a Project becomes: a namespace, quotas by tier, its members' rights, and who may reach in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pincompute.api.membership import Review, Role
from pincompute.api.names import CONTACT, INGRESS, KIND, PRIORITY, PROJECT, REVIEW, SYSTEM
from pincompute.api.policy import policy_faults
from pincompute.api.project import Project, ProjectStatus, TierQuota, Who
from pincompute.api.status import READY
from pincompute.base import reasons
from pincompute.base.problem import Problem, Where
from pincompute.objects.content import Object, identity
from pincompute.planning import names, natives, status
from pincompute.planning.plan import Plan
from pincompute.planning.pods.pod import GPU
from pincompute.planning.quotas.quota import first_cause, uncounted
from pincompute.planning.snapshot import Native, Snapshot

RBAC = "rbac.authorization.k8s.io"
NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""Kubernetes' own label on every namespace."""
_BOUNDED = ("configmaps", "secrets", "services", "persistentvolumeclaims", "jobs.batch")
_NONE = {"pods": "0"}


def plan(snapshot: Snapshot) -> Plan:
    """First the namespace, then what lies in it: nobody gets rights in a namespace that is somebody else's."""
    owner: Project = snapshot.owner
    seen = tuple((each.kind, each.metadata.name) for each in snapshot.natives)
    namespace = next((each for each in snapshot.natives if each.kind == "Namespace"), None)
    if namespace is None or namespace.metadata.controller != owner.metadata.uid:
        waiting = "its namespace is not made yet"
        return Plan((_namespace(owner),), _status(snapshot, None, waiting), kept=seen, more=True)
    if _ending(namespace):
        problem = _told(owner, namespace)
        return Plan((), _status(snapshot, problem), why=problem, kept=seen)
    quotas = _quotas(owner)
    wanted = (_namespace(owner), *quotas, *_rights(owner), *_doors(owner))
    waiting = _unmade(wanted, seen) or uncounted(quotas, snapshot.natives)
    problem = None if waiting else _misread(owner) or first_cause(owner.metadata.name, quotas, snapshot.natives)
    return Plan(wanted, _status(snapshot, problem, waiting), why=problem)


def _misread(owner: Project) -> Problem | None:
    """A rule past which nothing comes in, whoever wrote it there."""
    policies = owner.spec.policies
    for (index, *_), what, note, next_ in policy_faults(policies, ()):
        said = f"the policy {policies[int(index)].name} of project {owner.metadata.name} cannot be kept: {what}"
        mend = next_ or f"mend it: kubectl edit project {owner.metadata.name}"
        return Problem(reasons.POLICY_UNCLEAR, said, Where(object=f"project {owner.metadata.name}"), note, mend)
    return None


def _native(owner: Project, api_version: str, kind: str, name: str, body: Object) -> Object:
    """All but the namespace itself lie in it."""
    return natives.owned(owner, api_version, kind, {**_metadata(owner, name), "namespace": owner.metadata.name}, body)


def _metadata(owner: Project, name: str) -> Object:
    return {
        "name": name,
        "labels": {PROJECT: owner.metadata.name, KIND: owner.kind},
        "annotations": natives.tracked(owner.spec.owner, owner.spec.cost_centre),
    }


def _namespace(owner: Project) -> Object:
    """In which nobody runs as root, nor with any right on a node, unless it is the infrastructure team's."""
    metadata = _metadata(owner, owner.metadata.name)
    level = "restricted" if owner.spec.quota.infrastructure is None else "privileged"
    metadata["labels"] |= {"pod-security.kubernetes.io/enforce": level, REVIEW: str(owner.spec.review)}
    if owner.spec.contact:
        metadata["annotations"] |= {CONTACT: owner.spec.contact}
    return natives.owned(owner, "v1", "Namespace", metadata, {})


def _quotas(owner: Project) -> tuple[Object, ...]:
    """A tier that is not named may not be used. Every pod has one: of those with another priority there may be none."""
    quota = owner.spec.quota
    by_class = quota.by_class()
    objects = {"requests.storage": quota.storage, **{f"count/{each}": quota.objects for each in _BOUNDED}}
    hard = {
        **{name: _hard(bounds) for name, bounds in by_class.items()},
        names.NO_TIER: _NONE,
        names.OBJECTS: _named(objects),
    }
    scopes = {**{name: _scope("In", [name]) for name in by_class}, names.NO_TIER: _scope("NotIn", by_class)}
    return tuple(
        _native(owner, "v1", "ResourceQuota", name, {"spec": {"hard": bounds, **scopes.get(name, {})}})
        for name, bounds in hard.items()
        if bounds
    )


def _hard(said: TierQuota | None) -> Object:
    if said is None:
        return _NONE
    return _named(
        {
            "requests.cpu": said.cpu,
            "requests.memory": said.memory,
            f"requests.{GPU}": said.gpus,
            "pods": said.pods,
        }
    )


def _scope(operator: str, tiers: Iterable[str]) -> Object:
    classes = [f"{PRIORITY}{name}" for name in tiers]
    return {
        "scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": operator, "values": classes}]}
    }


def _named(hard: Object) -> Object:
    """What is bounded; nothing is a bound too."""
    return {name: str(value) for name, value in hard.items() if value not in ("", None)}


def _rights(owner: Project) -> tuple[Object, ...]:
    """Each role adds to those after it. Where only landed work may run, nobody brings any in past the desk."""
    members = owner.spec.members
    owners, deployers, viewers = ([members.of(role)] for role in Role)
    bound = {
        Role.OWNER.value: owners,
        Role.DEPLOYER.value: owners + deployers,
        Role.VIEWER.value: owners + deployers + viewers,
        names.SUBMITTER: owners + deployers if owner.spec.review is Review.OPEN else [],
    }
    made = ((role, _subjects(owner.metadata.name, who)) for role, who in bound.items())
    return tuple(_binding(owner, role, subjects) for role, subjects in made if subjects)


def _binding(owner: Project, role: str, subjects: list[Object]) -> Object:
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": names.project_role(role)}
    return _native(owner, f"{RBAC}/v1", "RoleBinding", role, {"roleRef": reference, "subjects": subjects})


def _subjects(project: str, who: Iterable[Who | None]) -> list[Object]:
    """A program is known by the account of its workload."""
    there = [each for each in who if each]
    people = sorted({name for each in there for name in each.people})
    groups = sorted({name for each in there for name in each.groups})
    named = [*(("User", name) for name in people), *(("Group", name) for name in groups)]
    programs = sorted({tuple(name.split("/")) for each in there for name in each.programs_of(project)})
    return [
        *({"apiGroup": RBAC, "kind": kind, "name": name} for kind, name in named),
        *({"kind": "ServiceAccount", "namespace": whose, "name": name} for whose, name in programs),
    ]


def _doors(owner: Project) -> tuple[Object, ...]:
    """Who may reach in; out is open. A policy for each, as Kubernetes gives their rules no names."""
    system = {"key": NAMESPACE_NAME, "operator": "In", "values": ["kube-system", SYSTEM]}
    callers = {"key": PROJECT, "operator": "In", "values": sorted(set(owner.spec.callers))}
    return (
        _door(owner, names.FROM_PROJECT, {"podSelector": {}}),
        _door(owner, names.FROM_SYSTEM, _namespaces(matchExpressions=[system])),
        _door(owner, names.FROM_INGRESS, _namespaces(matchLabels={INGRESS: "true"})),
        *((_door(owner, names.FROM_CALLERS, _namespaces(matchExpressions=[callers])),) if owner.spec.callers else ()),
    )


def _door(owner: Project, name: str, peer: Object) -> Object:
    spec: Object = {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": [peer]}]}
    return _native(owner, "networking.k8s.io/v1", "NetworkPolicy", name, {"spec": spec})


def _namespaces(**selector: Any) -> Object:
    return {"namespaceSelector": selector}


def _ending(namespace: Native) -> bool:
    return bool(namespace.metadata.deletion_timestamp) or namespace.status.phase == "Terminating"


def _told(owner: Project, namespace: Native) -> Problem:
    """With what it waits for, where Kubernetes says so."""
    left = [each.message for each in namespace.status.conditions if each.status == "True" and each.message]
    name = owner.metadata.name
    return Problem(
        reasons.PROJECT_ENDING,
        f"the namespace {name} is being removed, with all that is in it",
        Where(object=f"namespace {name}"),
        "; ".join(sorted(left)),
        f"see what is left: kubectl get pinterest,pods,persistentvolumeclaims -n {name}",
    )


def _unmade(wanted: Iterable[Object], seen: Iterable[tuple[str, str]]) -> str:
    there = set(seen)
    missing = [identity(each) for each in wanted if (each["kind"], each["metadata"]["name"]) not in there]
    return f"{missing[0]} is not made yet" if missing else ""


def _status(snapshot: Snapshot, problem: Problem | None, waiting: str = "") -> ProjectStatus:
    """A quota that is used up is told, and so is a rule that cannot be read; the project is as ready as ever."""
    if waiting:
        said = status.said(snapshot, READY, reasons.PROGRESSING, waiting, status=False)
    elif problem:
        ready = problem.reason is not reasons.PROJECT_ENDING
        said = status.said(snapshot, READY, problem.reason, problem.message(), status=ready)
    else:
        said = status.said(snapshot, READY, reasons.AVAILABLE, "work may come in", status=True)
    generation = snapshot.owner.metadata.generation
    return ProjectStatus(observed_generation=generation, next=problem.next if problem else "", conditions=[said])

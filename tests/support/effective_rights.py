"""What a user reaches through the objects that it may create or change, computed from its rules.

A right to create pods is a right to read every Secret of the namespace and to use every service account in it, so the
rules of a role alone say little.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from pincompute.api.kinds import WORKLOADS
from pincompute.api.names import GROUP
from pincompute.kube.resource import Object
from policed_cluster import RBAC_FILES, manifest_objects

TEMPLATES = frozenset(
    {
        ("apps", "deployments"),
        ("apps", "replicasets"),
        ("apps", "statefulsets"),
        ("apps", "daemonsets"),
        ("batch", "jobs"),
        ("batch", "cronjobs"),
        ("kubeflow.org", "pytorchjobs"),
        ("kubeflow.org", "tfjobs"),
        ("", "replicationcontrollers"),
    }
)
KUBERNETES_ROLES = {
    ("ClusterRole", "system:kubelet-api-admin"): {
        "rules": [{"apiGroups": [""], "resources": ["nodes/proxy"], "verbs": ["get", "create"]}]
    }
}
"""Roles of Kubernetes that the manifests bind, with the rules that matter here."""
WRITES = frozenset({"create", "update", "patch"})
_READS = frozenset({"get", "list", "watch"})
_RBAC = "rbac.authorization.k8s.io"
_WORKLOADS = frozenset((GROUP, kind.plural()) for kind in WORKLOADS.values())


class Rule(NamedTuple):
    """One permission, and where it holds: everywhere, or in one namespace."""

    namespace: str
    group: str
    resource: str
    verb: str
    names: tuple[str, ...] = ()


class Power(NamedTuple):
    """Something dangerous that a user can do, and where."""

    what: str
    where: str

    def __str__(self) -> str:
        return f"{self.what} {self.where}"


def platform_users() -> set[str]:
    """Users and service accounts of the platform that the manifests give rights to, without groups."""
    return {
        subject["name"]
        for each in _objects()
        for subject in each.get("subjects", ())
        if subject["kind"] in {"User", "ServiceAccount"}
    }


def rules_of(user: str) -> Iterator[Rule]:
    objects = _objects()
    named = {(each["kind"], each["metadata"]["name"]): each for each in objects if "rules" in each}
    roles: dict[tuple[str, str], Object] = {**KUBERNETES_ROLES, **named}
    for binding in objects:
        if not any(each["name"] == user for each in binding.get("subjects", ())):
            continue
        role = roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]]
        namespace = binding["metadata"].get("namespace", "") if binding["kind"] == "RoleBinding" else ""
        for rule in role["rules"]:
            yield from _expanded(rule, namespace)


def powers_of(user: str) -> set[Power]:
    return {power for rule in rules_of(user) for power in _powers(rule)}


def _powers(rule: Rule) -> Iterator[Power]:
    where = f"in {rule.namespace}" if rule.namespace else "everywhere"
    target, writes = (rule.group, rule.resource), rule.verb in WRITES
    makes_pods = target == ("", "pods") or target in TEMPLATES
    # Pairs rather than a dict: two of them may have the same name.
    follows = (
        (f"read Secrets{_named(rule)}", rule.resource == "secrets" and rule.verb in _READS),
        (f"write Secrets{_named(rule)}", rule.resource == "secrets" and writes),
        ("issue tokens", rule.resource == "serviceaccounts/token" and writes),
        ("create pods", makes_pods and rule.verb == "create"),
        # A changed image runs with the Secrets and the account of the pod.
        ("change pods", makes_pods and rule.verb in {"update", "patch"}),
        ("enter pods", rule.resource in {"pods/exec", "pods/attach", "pods/ephemeralcontainers", "nodes/proxy"}),
        ("bind roles", rule.group == _RBAC and rule.resource.endswith("bindings") and writes),
        (f"{rule.verb} {rule.resource}{_named(rule)}", rule.verb in {"bind", "escalate", "impersonate"}),
        (f"{rule.verb} certificates{_named(rule)}", rule.verb in {"approve", "sign", "attest"}),
        ("create volumes of the node", target == ("", "persistentvolumes") and writes),
        ("write namespaces", target == ("", "namespaces") and writes),
        ("write admission policies", rule.group == "admissionregistration.k8s.io" and writes),
        ("write workloads", target in _WORKLOADS and writes),
    )
    yield from (Power(what, where) for what, true in follows if true)


def _named(rule: Rule) -> str:
    return f" {', '.join(rule.names)}" if rule.names else ""


def _expanded(rule: Any, namespace: str) -> Iterator[Rule]:
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                yield Rule(namespace, group, resource, verb, tuple(rule.get("resourceNames", ())))


def _objects() -> list[Object]:
    return manifest_objects(*RBAC_FILES, "support", "real_node")

"""What our own users reach, also through the objects that they may create; none of them reaches a cluster's Secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from effective_rights import TEMPLATES, WRITES, Power, platform_users, powers_of, rules_of
from pincompute.api.names import API_VERSION, DESK, OPERATOR, PROJECT_LABEL, SYSTEM_NAMESPACE
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.engine.own_services import INGRESS
from pincompute.kube import resource as kinds
from pincompute.kube.client import Client
from pincompute.kube.errors import Forbidden
from pincompute.kube.resource import Object, Resource
from policed_cluster import (
    PolicedProject,
    exec_into,
    manifest_objects,
    pod_template,
    restricted_pod,
    role_binding,
    templates,
)

PAGE = Path(__file__).parents[2] / "docs" / "threat-model.md"
KUBE_SYSTEM = "kube-system"
UNCONFINED = {
    "pincompute-kwok": {Power("change pods", "everywhere")},
    "kube-apiserver": {Power("enter pods", "everywhere")},
}
"""Users whose power no policy confines; docs/threat-model.md says why."""


def test_powers_of_all_users_are_in_the_threat_model() -> None:
    """A right that is added to a role has to be argued in the table."""
    rows = re.findall(r"^\| `([-\w]+)` \| ([^|]+) \| [^|]{20,} \|$", PAGE.read_text(), re.MULTILINE)
    documented = {(user, power) for user, powers in rows for power in powers.strip().split("; ")}
    computed = {(user, str(power)) for user in platform_users() for power in powers_of(user)}
    assert documented == computed


def test_nobody_reads_secrets_or_issues_tokens_everywhere() -> None:
    forbidden = ("read Secrets", "write Secrets", "issue tokens", "impersonate", "escalate", "write admission policies")
    for user in platform_users():
        wide = [str(each) for each in powers_of(user) if each.where == "everywhere"]
        assert not [each for each in wide if each.startswith(forbidden)], user


@pytest.mark.parametrize(("user", "policy"), [(OPERATOR, "pincompute-confined-operator")])
def test_policy_covers_all_that_the_operator_may_write_in_a_namespace(user: str, policy: str) -> None:
    """A resource that is added to the role has to be added to the policy."""
    (found,) = (
        each
        for each in manifest_objects("confinement")
        if each["metadata"]["name"] == policy and each["kind"] == "ValidatingAdmissionPolicy"
    )
    covered = {
        (group, resource)
        for rule in found["spec"]["matchConstraints"]["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        if rule["operations"] == ["CREATE", "UPDATE", "DELETE"]
    }
    elsewhere = {
        # Cluster-wide; namespaces have a policy of their own, and roles are bound, never written.
        ("", "namespaces"),
        ("rbac.authorization.k8s.io", "clusterroles"),
        # Events say something, and do nothing. Those of a project are in the namespace default.
        ("events.k8s.io", "events"),
    }
    written = {
        (rule.group, rule.resource)
        for rule in rules_of(user)
        if rule.verb in {*WRITES, "delete"} and not rule.namespace and rule.group != "pinterest.com"
    }
    assert written - elsewhere == covered


PROBES: tuple[tuple[str, str, str, str, str], ...] = (
    ("get", "", "secrets", "", ""),
    ("list", "", "secrets", "", ""),
    ("create", "", "secrets", "", ""),
    ("create", "", "serviceaccounts", "token", ""),
    ("impersonate", "", "users", "", "admin"),
    ("impersonate", "", "groups", "", "system:masters"),
    ("impersonate", "", "serviceaccounts", "", "default"),
    ("create", "rbac.authorization.k8s.io", "clusterrolebindings", "", ""),
    ("create", "rbac.authorization.k8s.io", "clusterroles", "", ""),
    ("create", "rbac.authorization.k8s.io", "roles", "", ""),
    ("bind", "rbac.authorization.k8s.io", "clusterroles", "", "cluster-admin"),
    ("escalate", "rbac.authorization.k8s.io", "clusterroles", "", "pincompute-operator"),
    ("approve", "certificates.k8s.io", "signers", "", "kubernetes.io/kube-apiserver-client"),
    ("sign", "certificates.k8s.io", "signers", "", "kubernetes.io/kube-apiserver-client"),
    ("approve", "certificates.k8s.io", "signers", "", "kubernetes.io/kubelet-serving"),
    ("create", "admissionregistration.k8s.io", "validatingadmissionpolicies", "", ""),
    ("delete", "admissionregistration.k8s.io", "validatingadmissionpolicybindings", "", ""),
    ("create", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", "", ""),
    ("patch", "", "pods", "ephemeralcontainers", ""),
    ("create", "", "nodes", "", ""),
    ("create", "apiextensions.k8s.io", "customresourcedefinitions", "", ""),
)


@pytest.mark.cluster
async def test_api_server_grants_no_power_over_the_cluster(project: PolicedProject) -> None:
    for user in sorted(platform_users()):
        async with project.as_user(user) as client:
            granted = [
                (*probe, place)
                for probe in PROBES
                for place in (KUBE_SYSTEM, SYSTEM_NAMESPACE, project.name)
                if await _may(client, probe, place)
            ]
            assert granted == [], user


@pytest.mark.cluster
async def test_only_the_ingress_writes_the_status_of_ingresses(project: PolicedProject) -> None:
    """With this right, a member could make a service ready although its address leads elsewhere."""
    rule = {"host": f"web.{project.name}.localhost"}
    body = {"metadata": {"name": "reported"}, "spec": {"rules": [rule]}}
    await project.create(project.admin, kinds.INGRESSES, body)
    points = {"status": {"loadBalancer": {"ingress": [{"hostname": rule["host"]}]}}}
    status = partial(_patch_ingress, project, "status")
    async with project.as_user(INGRESS) as ingress:
        stolen = {**points, "spec": {"rules": [{"host": "you.localhost"}]}}
        assert (await status(ingress, stolen))["spec"]["rules"] == [rule]
        with pytest.raises(Forbidden):
            await _patch_ingress(project, "", ingress, stolen)
    async with project.as_user("olga") as owner:
        with pytest.raises(Forbidden):
            await status(owner, points)


async def _patch_ingress(project: PolicedProject, subresource: str, client: Client, body: Object) -> Object:
    return await client.patch(
        kinds.INGRESSES, "reported", project.name, body, style="merge", manager="tests", subresource=subresource
    )


async def _may(client: Client, probe: tuple[str, str, str, str, str], place: str) -> bool:
    attributes = dict(zip(("verb", "group", "resource", "subresource", "name"), probe, strict=True))
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {**attributes, "namespace": place}},
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    return bool(json.loads(await client.raw("POST", path, body=json.dumps(review).encode()))["status"]["allowed"])


@pytest.mark.cluster
async def test_powers_end_at_the_namespaces_of_projects(project: PolicedProject) -> None:
    """Every power of every user is tried in a namespace of the cluster, and denied by a policy."""
    victim = f"victim-{project.name}"
    pod = {"metadata": {"name": victim}, "spec": restricted_pod(priorityClassName="")}
    await project.create(project.admin, kinds.PODS, pod, place=KUBE_SYSTEM)
    await project.create(project.admin, kinds.DEPLOYMENTS, _victim(victim), place=KUBE_SYSTEM)
    tried = set()
    for user in sorted(platform_users()):
        for power in sorted(powers_of(user)):
            if power.where != "everywhere" or power in UNCONFINED.get(user, set()):
                continue
            async with project.as_user(user) as client:
                for attempt in _attempts(project, client, user, power.what, victim):
                    with pytest.raises(Forbidden, match="ValidatingAdmissionPolicy"):
                        await attempt()
                    tried.add((user, power.what))
    assert {
        (OPERATOR, "create pods"),
        (OPERATOR, "change pods"),
        (OPERATOR, "bind roles"),
        (OPERATOR, "write namespaces"),
        (DESK, "create pods"),
        (DESK, "enter pods"),
        (DESK, "write workloads"),
        ("pincompute-kubeflow", "create pods"),
        ("pincompute-kubeflow", "change pods"),
        ("pincompute-storage", "create volumes of the node"),
    } == tried
    await project.admin.delete(kinds.PODS, victim, KUBE_SYSTEM)
    await project.admin.delete(kinds.DEPLOYMENTS, victim, KUBE_SYSTEM)


def _victim(name: str) -> Object:
    (body,) = (body for resource, body in templates(pod_template()) if resource is kinds.DEPLOYMENTS)
    return {**body, "metadata": {"name": name}}


def _attempts(
    project: PolicedProject, client: Client, user: str, power: str, victim: str
) -> list[Callable[[], Awaitable[object]]]:
    """Ways to use a power in a namespace of the cluster."""
    (container,) = restricted_pod()["containers"]
    image = {"spec": {"containers": [{**container, "image": "evil:1"}]}}
    rights = {(rule.group, rule.resource) for rule in rules_of(user) if rule.verb == "create"}

    def create(resource: Resource, body: Object) -> Callable[[], Awaitable[object]]:
        return lambda: project.create(client, resource, body, place=KUBE_SYSTEM)

    def patch(
        resource: Resource, name: str, change: Object, place: str = KUBE_SYSTEM
    ) -> Callable[[], Awaitable[object]]:
        return lambda: client.patch(resource, name, place, change, style="merge", manager="tests")

    pod = (kinds.PODS, {"metadata": {"name": "grab"}, "spec": restricted_pod(priorityClassName="")})
    created = [
        create(resource, body)
        for resource, body in (pod, *templates(pod_template()))
        if (resource.group, resource.plural) in rights & (TEMPLATES | {("", "pods")})
    ]
    changed = [patch(kinds.PODS, victim, image)]
    if user == OPERATOR:
        changed.append(patch(kinds.DEPLOYMENTS, victim, {"spec": {"template": image}}))
    project_label = {"metadata": {"labels": {PROJECT_LABEL: "x"}}}
    workload = {
        "apiVersion": API_VERSION,
        "kind": "PinterestService",
        "metadata": {"name": "web"},
        "spec": {"image": "web:1", "port": 8080},
    }
    volume = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/"}}
    attempts: dict[str, list[Callable[[], Awaitable[object]]]] = {
        "create pods": created,
        "change pods": changed,
        "enter pods": [lambda: exec_into(client, KUBE_SYSTEM, pod=victim)],
        "bind roles": [create(kinds.ROLE_BINDINGS, role_binding(OPERATOR, "User", "mallory"))],
        "write namespaces": [patch(kinds.NAMESPACES, KUBE_SYSTEM, project_label, "")],
        "write workloads": [create(CUSTOM_RESOURCES["PinterestService"], workload)],
        "create volumes of the node": [
            create(kinds.PERSISTENT_VOLUMES, {"metadata": {"name": "root"}, "spec": volume})
        ],
    }
    return attempts.get(power, [])

"""The multi-tenancy benchmarks of the Kubernetes working group, tried with the rights of an owner of a project.

docs/standards.md has a row for each check with its verdict; checks that another test covers are named there only.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from control_plane import ControlPlane
from pincompute.engine.bootstrap import read_manifest
from pincompute.kube import resource as kinds
from pincompute.kube.client import Client
from pincompute.kube.errors import Forbidden
from pincompute.kube.resource import Object
from policed_cluster import PolicedProject, policed_project, restricted_pod

pytestmark = pytest.mark.cluster

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
WRITE_VERBS = ("create", "update", "patch", "delete", "deletecollection")
REPLICA_SET_CONTROLLER = "system:serviceaccount:kube-system:replicaset-controller"
VOLUME_BINDER = "system:serviceaccount:kube-system:persistent-volume-binder"
ABOUT_ONESELF = {"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"}
"""Kubernetes lets every user create these; they say what the user may do, and store nothing."""


@pytest.fixture
async def other(policed: ControlPlane) -> AsyncIterator[PolicedProject]:
    """A project of nora, in which olga is no member."""
    async with policed_project(policed, members={"owner": {"people": ["nora"]}}) as made:
        yield made


async def _resources(admin: Client, *, namespaced: bool) -> list[tuple[str, str]]:
    """Group and name of every resource of the API server, subresources included."""
    groups = json.loads(await admin.raw("GET", "/apis"))["groups"]
    places = [
        ("", "/api/v1"),
        *((each["name"], f"/apis/{one['groupVersion']}") for each in groups for one in each["versions"]),
    ]
    found = [
        (group, each["name"])
        for group, path in places
        for each in json.loads(await admin.raw("GET", path))["resources"]
        if each["namespaced"] is namespaced and each["name"] not in ABOUT_ONESELF
    ]
    return sorted(set(found))


async def _is_allowed(client: Client, verb: str, resource: tuple[str, str], place: str = "") -> bool:
    group, name = resource
    name, _, subresource = name.partition("/")
    wish = {"group": group, "resource": name, "subresource": subresource, "verb": verb, "namespace": place}
    review: Object = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": wish},
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    allowed: bool = json.loads(await client.raw("POST", path, body=json.dumps(review).encode()))["status"]["allowed"]
    return allowed


async def _allowed(client: Client, resources: list[tuple[str, str]], place: str = "") -> list[str]:
    return [
        f"{verb} {group}/{name}"
        for group, name in resources
        for verb in VERBS
        if await _is_allowed(client, verb, (group, name), place)
    ]


async def test_owner_reaches_no_cluster_wide_resource(project: PolicedProject) -> None:
    resources = await _resources(project.admin, namespaced=False)
    assert {("", "nodes"), ("", "persistentvolumes"), ("rbac.authorization.k8s.io", "clusterroles")} <= set(resources)
    async with project.as_user("olga") as olga:
        assert await _allowed(olga, resources) == []


async def test_owner_reaches_no_resource_of_another_project(project: PolicedProject, other: PolicedProject) -> None:
    resources = await _resources(project.admin, namespaced=True)
    resources = [each for each in resources if each[1] != "localsubjectaccessreviews"]
    assert {("", "secrets"), ("pinterest.com", "pinterestservices"), ("", "pods/exec")} <= set(resources)
    async with project.as_user("olga") as olga:
        assert await _allowed(olga, resources, other.name) == []
        # The same question about her own project has another answer.
        assert "create pinterest.com/pinterestservices" in await _allowed(olga, resources, project.name)


async def test_owner_cannot_change_objects_that_confine_the_project(project: PolicedProject) -> None:
    """What the operator made of the Project: members, network policies, limits and the namespace itself."""
    confining = (kinds.ROLE_BINDINGS, kinds.NETWORK_POLICIES, kinds.LIMIT_RANGES)
    async with project.as_user("olga") as olga:
        for resource in confining:
            names = [each["metadata"]["name"] for each in (await project.admin.list(resource, project.name)).items]
            assert names, resource
            for name in names:
                change = {"metadata": {"annotations": {"key": "value"}}}
                with pytest.raises(Forbidden, match="cannot patch resource"):
                    await olga.patch(resource, name, project.name, change, style="merge", manager="tests")
                with pytest.raises(Forbidden, match="cannot delete resource"):
                    await olga.delete(resource, name, project.name)
        level = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}
        with pytest.raises(Forbidden, match="cannot patch resource"):
            await olga.patch(kinds.NAMESPACES, project.name, "", level, style="merge", manager="tests")


@pytest.mark.parametrize("resource", ["resourcequotas", "limitranges"])
async def test_owner_cannot_write_quotas_and_limits(project: PolicedProject, resource: str) -> None:
    async with project.as_user("olga") as olga:
        allowed = [verb for verb in WRITE_VERBS if await _is_allowed(olga, verb, ("", resource), project.name)]
        assert allowed == []
        assert await _is_allowed(olga, "get", ("", resource), project.name)


def _container(**fields: Any) -> Object:
    (container,) = restricted_pod()["containers"]
    return {"containers": [{**container, **fields}]}


RIGHTS = restricted_pod()["containers"][0]["securityContext"]
SECCOMP = {"seccompProfile": {"type": "RuntimeDefault"}}
POD_CHECKS: dict[str, tuple[Object, str]] = {
    "add capabilities": (
        _container(securityContext={**RIGHTS, "capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN"]}}),
        "unrestricted capabilities",
    ),
    "run as unknown user": ({"securityContext": SECCOMP}, "runAsNonRoot != true"),
    "run as root": ({"securityContext": {**SECCOMP, "runAsUser": 0}}, "runAsUser=0"),
    "privileged container": (_container(securityContext={"privileged": True}), "privileged"),
    "privilege escalation": (
        _container(securityContext={**RIGHTS, "allowPrivilegeEscalation": True}),
        "allowPrivilegeEscalation != false",
    ),
    "host path": ({"volumes": [{"name": "etc", "hostPath": {"path": "/etc"}}]}, "hostPath"),
    "host network": ({"hostNetwork": True}, "host namespaces"),
    "host port": (_container(ports=[{"containerPort": 80, "hostPort": 80}]), "hostPort"),
    "host PID": ({"hostPID": True}, "host namespaces"),
    "host IPC": ({"hostIPC": True}, "host namespaces"),
    "volume without a claim": (
        {"volumes": [{"name": "theirs", "nfs": {"server": "192.0.2.1", "path": "/"}}]},
        "restricted volume types",
    ),
}


@pytest.mark.parametrize("check", POD_CHECKS)
async def test_template_of_a_tenant_gets_no_pod_beyond_the_restricted_level(
    project: PolicedProject, check: str
) -> None:
    """An owner creates no pods; a controller does, of the template that the owner deploys."""
    fields, expected = POD_CHECKS[check]
    pod = {"metadata": {"name": "excess"}, "spec": restricted_pod(**fields)}
    async with project.as_user("olga") as olga:
        with pytest.raises(Forbidden, match='cannot create resource "pods"'):
            await project.create(olga, kinds.PODS, pod)
    async with project.as_user(REPLICA_SET_CONTROLLER, "system:masters") as controller:
        with pytest.raises(Forbidden, match="violates PodSecurity") as refused:
            await project.create(controller, kinds.PODS, pod)
        assert expected in refused.value.message
        await project.create(controller, kinds.PODS, {"metadata": {"name": "plain"}, "spec": restricted_pod()})


def _service(name: str, **spec: Any) -> Object:
    return {"metadata": {"name": name}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}], **spec}}


async def test_service_opens_no_port_of_the_nodes(project: PolicedProject) -> None:
    """An owner writes no Services; ann may write all built-in objects, as a user with the role `edit`."""
    async with project.as_user("olga") as olga:
        with pytest.raises(Forbidden, match='cannot create resource "services"'):
            await project.create(olga, kinds.SERVICES, _service("open", type="NodePort"))
    async with project.as_user("ann") as ann:
        for type_ in ("NodePort", "LoadBalancer"):
            message = await project.refusal(ann, kinds.SERVICES, _service("open", type=type_))
            assert f"the Service open must not have the type {type_}" in message
            assert "requested by ann. Use the type ClusterIP" in message
        external = _service("open", externalIPs=["192.0.2.7"])
        assert "must not take the external address 192.0.2.7" in await project.refusal(ann, kinds.SERVICES, external)
        await project.create(ann, kinds.SERVICES, _service("inside"))
        for change in ({"type": "NodePort"}, {"externalIPs": ["192.0.2.7"]}):
            with pytest.raises(Forbidden, match="ValidatingAdmissionPolicy"):
                await ann.patch(
                    kinds.SERVICES, "inside", project.name, {"spec": change}, style="merge", manager="tests"
                )


@pytest.fixture
async def open_services(policed: ControlPlane) -> AsyncIterator[PolicedProject]:
    """A project whose namespace has a Service of the type NodePort from before it became one of a project."""
    async with policed_project(policed) as made:
        label: Object = {"metadata": {"labels": {"pinterest.com/project": None}}}
        await made.admin.patch(kinds.NAMESPACES, made.name, "", label, style="merge", manager="tests")
        await made.create(made.admin, kinds.SERVICES, _service("before", type="NodePort"))
        label = {"metadata": {"labels": {"pinterest.com/project": made.name}}}
        await made.admin.patch(kinds.NAMESPACES, made.name, "", label, style="merge", manager="tests")
        yield made


async def test_service_from_before_can_be_changed_and_closed(open_services: PolicedProject) -> None:
    admin, place = open_services.admin, open_services.name
    for change in ({"selector": {"app": "api"}}, {"type": "ClusterIP"}):
        await admin.patch(kinds.SERVICES, "before", place, {"spec": change}, style="merge", manager="tests")
    with pytest.raises(Forbidden, match="must not have the type NodePort"):
        await admin.patch(
            kinds.SERVICES, "before", place, {"spec": {"type": "NodePort"}}, style="merge", manager="tests"
        )


def _claim(name: str, **spec: Any) -> Object:
    resources = {"requests": {"storage": "1Gi"}}
    return {"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources, **spec}}


async def test_claim_cannot_choose_an_existing_volume(project: PolicedProject) -> None:
    async with project.as_user("ann") as ann:
        named = _claim("data", storageClassName="", volumeName="pvc-of-others")
        message = await project.refusal(ann, kinds.PERSISTENT_VOLUME_CLAIMS, named)
        assert "the claim data must not choose the volume pvc-of-others; requested by ann" in message
        assert f"reserve the volume for {project.name}/data: spec.claimRef" in message
        selecting = _claim("data", storageClassName="", selector={"matchLabels": {"team": "others"}})
        message = await project.refusal(ann, kinds.PERSISTENT_VOLUME_CLAIMS, selecting)
        assert "the claim data must not select volumes by labels" in message
        await project.create(ann, kinds.PERSISTENT_VOLUME_CLAIMS, _claim("data"))
        bound = {"spec": {"volumeName": "pvc-of-others"}}
        with pytest.raises(Forbidden, match="must not choose the volume pvc-of-others"):
            await ann.patch(kinds.PERSISTENT_VOLUME_CLAIMS, "data", project.name, bound, style="merge", manager="tests")
    async with project.as_user(VOLUME_BINDER, "system:masters") as binder:
        await binder.patch(kinds.PERSISTENT_VOLUME_CLAIMS, "data", project.name, bound, style="merge", manager="tests")


def test_default_storage_class_deletes_the_data_with_the_claim() -> None:
    """Only administrators create classes and volumes: `test_owner_reaches_no_cluster_wide_resource`."""
    classes = [each for each in read_manifest("base") if each["kind"] == "StorageClass"]
    assert [each["reclaimPolicy"] for each in classes] == ["Delete"]


@pytest.mark.parametrize(
    "resource",
    [
        ("networking.k8s.io", "networkpolicies"),
        ("rbac.authorization.k8s.io", "roles"),
        ("rbac.authorization.k8s.io", "rolebindings"),
    ],
)
async def test_policies_and_members_follow_from_the_project_only(
    project: PolicedProject, resource: tuple[str, str]
) -> None:
    """Where we differ: the second level wants owners to write these; here they are planned from the Project."""
    async with project.as_user("olga") as olga:
        assert not [verb for verb in WRITE_VERBS if await _is_allowed(olga, verb, resource, project.name)]

"""Attacks of tenants, of users with wide roles and of our own users on a real API server, each denied by a policy."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest

from control_plane import ControlPlane
from pincompute.api.names import (
    API_VERSION,
    DESK,
    KIND_LABEL,
    OPERATOR,
    PROJECT_LABEL,
    SIGNER,
    SYSTEM_NAMESPACE,
    WORKLOAD_LABEL,
)
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube import resource as kinds
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError, Forbidden
from pincompute.kube.resource import Object
from policed_cluster import (
    WEB,
    PolicedProject,
    exec_into,
    owner_of,
    pod_template,
    policed_project,
    restricted_pod,
    role_binding,
    templates,
)
from polling import until
from running_operator import operated_cluster

pytestmark = pytest.mark.cluster

KUBE_SYSTEM = "kube-system"
TOKEN_TYPE = "kubernetes.io/service-account-token"
ACCOUNT_ANNOTATION = "kubernetes.io/service-account.name"
DAEMON_SET_CONTROLLER = "system:serviceaccount:kube-system:daemon-set-controller"
RESERVED = f"the label {KIND_LABEL} is reserved for objects of workloads"
BORROWING = {"spec": {"template": {"spec": {"serviceAccountName": WEB, "serviceAccount": WEB}}}}


@pytest.fixture
async def infrastructure(policed: ControlPlane) -> AsyncIterator[PolicedProject]:
    async with policed_project(policed, quota={"infrastructure": {}, "on-demand": {}}) as made:
        yield made


def token_secret(name: str, account: str = WEB) -> Object:
    return {"metadata": {"name": name, "annotations": {ACCOUNT_ANNOTATION: account}}, "type": TOKEN_TYPE}


async def test_owner_cannot_store_a_token_that_never_expires(project: PolicedProject) -> None:
    async with project.as_user("olga") as olga:
        await project.create(olga, kinds.SECRETS, {"metadata": {"name": "password"}})
        for account in (WEB, "default"):
            message = await project.refusal(olga, kinds.SECRETS, token_secret("forever", account))
            assert f"must not hold a token of the service account {account}, as it would never expire" in message
            assert f"requested by olga. Request a token that expires: kubectl create token {account}" in message
    assert "never expire" in await project.refusal(
        project.admin, kinds.SECRETS, token_secret("forever", OPERATOR), place=SYSTEM_NAMESPACE
    )


async def test_token_secret_from_before_cannot_change_its_account(project: PolicedProject) -> None:
    """It is created before the namespace becomes one of a project."""
    place = f"{project.name}-before"
    await project.admin.create(kinds.NAMESPACES, {"metadata": {"name": place}}, manager="tests")
    await project.create(project.admin, kinds.SECRETS, token_secret("old", "default"), place=place)
    await _label_namespace(project.admin, place)
    numbers = count(1)

    async def new_one_is_refused() -> bool:
        try:
            await project.create(
                project.admin, kinds.SECRETS, token_secret(f"new-{next(numbers)}", "default"), place=place
            )
        except Forbidden:
            return True
        return False

    # The API server reads the labels of namespaces from a cache.
    await until(new_one_is_refused, within=60)
    annotations = {"metadata": {"annotations": {ACCOUNT_ANNOTATION: WEB}}}
    with pytest.raises(Forbidden, match="never expire"):
        await project.admin.patch(kinds.SECRETS, "old", place, annotations, style="merge", manager="tests")
    # Kubernetes marks such Secrets with the day of their last use.
    used = {"metadata": {"labels": {"kubernetes.io/legacy-token-last-used": "2026-01-31"}}}
    await project.admin.patch(kinds.SECRETS, "old", place, used, style="merge", manager="tests")
    await project.admin.delete(kinds.NAMESPACES, place)


async def _label_namespace(admin: Client, place: str) -> None:
    label = {"metadata": {"labels": {PROJECT_LABEL: place}}}
    await admin.patch(kinds.NAMESPACES, place, "", label, style="merge", manager="tests")


async def test_token_of_a_workload_is_not_issued_to_users(project: PolicedProject) -> None:
    body = json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}).encode()
    path = kinds.SERVICE_ACCOUNTS.path(project.name, WEB, "token")
    async with project.as_user("olga") as olga, project.as_user("ann") as ann:
        with pytest.raises(Forbidden, match="cannot create resource"):
            await olga.raw("POST", path, body=body)
        for client in (ann, project.admin):
            with pytest.raises(Forbidden, match=f"tokens of {WEB} are reserved for pods of the workload"):
                await client.raw("POST", path, body=body)


async def test_templates_cannot_name_the_account_of_a_workload(project: PolicedProject) -> None:
    """Controllers create the pods of a template, so the policy for pods never sees who wrote it."""
    async with project.as_user("ann") as ann:
        for template in (pod_template(serviceAccountName=WEB), pod_template(serviceAccount=WEB)):
            for resource, body in templates(template):
                message = await project.refusal(ann, resource, body)
                assert f"the service account {WEB} is reserved for pods of the workload {WEB}" in message
                assert "requested by ann. Remove serviceAccountName" in message
        for resource, body in templates(pod_template(serviceAccountName="hers")):
            await project.create(ann, resource, body)
        with pytest.raises(Forbidden, match="is reserved for pods of the workload"):
            await ann.patch(kinds.DEPLOYMENTS, "borrows", project.name, BORROWING, style="merge", manager="tests")


async def test_templates_cannot_claim_the_label_of_a_workload(project: PolicedProject) -> None:
    async with project.as_user("ann") as ann:
        for resource, body in templates(pod_template(labels={WORKLOAD_LABEL: WEB})):
            message = await project.refusal(ann, resource, body)
            assert f"the workload {WEB}" in message, message
            assert "requested by ann" in message


async def test_nobody_but_the_operator_makes_objects_of_a_workload(project: PolicedProject) -> None:
    """An owner reference would exempt a template, and is as protected as the label."""
    workload = await project.admin.get(CUSTOM_RESOURCES["PinterestService"], WEB, project.name)
    async with project.as_user("ann") as ann:
        for resource, body in templates(pod_template(labels={WORKLOAD_LABEL: WEB}, serviceAccountName=WEB)):
            owned = {**body, "metadata": {**body["metadata"], "ownerReferences": [owner_of(workload)]}}
            assert "requested by ann" in await project.refusal(ann, resource, owned)


async def test_label_of_workload_objects_is_reserved(project: PolicedProject) -> None:
    """The label spares an object the checks of accounts, and makes an account a parameter of them for every write."""
    labels = {KIND_LABEL: "PinterestService"}
    owner = owner_of(await project.admin.get(CUSTOM_RESOURCES["PinterestService"], WEB, project.name))
    async with project.as_user("ann") as ann:
        pod = {"metadata": {"name": "borrows"}, "spec": restricted_pod()}
        account = {"metadata": pod["metadata"]}
        change = {"metadata": {"labels": labels}}
        for resource, body in (*templates(pod_template()), (kinds.PODS, pod), (kinds.SERVICE_ACCOUNTS, account)):
            labelled = {**body, "metadata": {**body["metadata"], "labels": labels}}
            assert RESERVED in await project.refusal(ann, resource, labelled)
            await project.create(ann, resource, body)
            with pytest.raises(Forbidden, match=RESERVED):
                await ann.patch(resource, "borrows", project.name, change, style="merge", manager="tests")
        owned = {"metadata": {"name": "owned", "labels": labels, "ownerReferences": [owner]}, "spec": restricted_pod()}
        assert RESERVED in await project.refusal(ann, kinds.PODS, owned)
        # An adopted object has the workload's label from the import on, and is not spared before it is owned.
        imported = {"metadata": {"labels": {WORKLOAD_LABEL: WEB}}}
        await ann.patch(kinds.DEPLOYMENTS, "borrows", project.name, imported, style="merge", manager="tests")
        with pytest.raises(Forbidden, match="is reserved for pods of the workload"):
            await ann.patch(kinds.DEPLOYMENTS, "borrows", project.name, BORROWING, style="merge", manager="tests")


async def test_labelled_object_keeps_its_template(project: PolicedProject) -> None:
    """A controller has created it; with its label, a changed template would not be checked for accounts."""
    labels = {KIND_LABEL: "PinterestService"}
    body = dict(templates(pod_template()))[kinds.REPLICA_SETS]
    async with project.as_user(DAEMON_SET_CONTROLLER, "system:masters") as controller:
        labelled = {**body, "metadata": {**body["metadata"], "labels": labels}}
        await project.create(controller, kinds.REPLICA_SETS, labelled)
    async with project.as_user("ann") as ann:
        for change, refused in (
            (BORROWING, RESERVED),
            ({"metadata": {"labels": {KIND_LABEL: None}}, **BORROWING}, "is reserved for"),
            ({"spec": {"replicas": 0}}, ""),
            ({"metadata": {"labels": {KIND_LABEL: None}}}, ""),
            (BORROWING, "is reserved for pods of the workload"),
        ):
            attempt = ann.patch(kinds.REPLICA_SETS, "borrows", project.name, change, style="merge", manager="tests")
            if refused:
                with pytest.raises(Forbidden, match=refused):
                    await attempt
            else:
                await attempt


async def test_account_of_a_workload_keeps_its_label(project: PolicedProject) -> None:
    """Without the label it would be an account like any other."""
    async with project.as_user("ann") as ann:
        changes: tuple[Object, ...] = (
            {"labels": {WORKLOAD_LABEL: None}},
            {"labels": {WORKLOAD_LABEL: "x"}},
            {"labels": {KIND_LABEL: None}},
            {"ownerReferences": None},
        )
        for metadata in changes:
            with pytest.raises(Forbidden, match="stays with its labels and owner; requested by ann"):
                await ann.patch(
                    kinds.SERVICE_ACCOUNTS, WEB, project.name, {"metadata": metadata}, style="merge", manager="tests"
                )
        with pytest.raises(Forbidden, match=f"Delete the workload instead: pin delete {WEB}"):
            await ann.delete(kinds.SERVICE_ACCOUNTS, WEB, project.name)
    async with project.as_user(OPERATOR) as operator:
        await operator.delete(kinds.SERVICE_ACCOUNTS, WEB, project.name)


def _container(**fields: Any) -> Object:
    (container,) = restricted_pod()["containers"]
    return {"containers": [{**container, **fields}]}


RIGHTS = restricted_pod()["containers"][0]["securityContext"]
EXCESSES: dict[str, Object] = {
    "hostNetwork": {"hostNetwork": True},
    "hostPID": {"hostPID": True},
    "hostIPC": {"hostIPC": True},
    "volume etc": {"volumes": [{"name": "etc", "hostPath": {"path": "/etc"}}]},
    "sysctl kernel.msgmax": {
        "securityContext": {**restricted_pod()["securityContext"], "sysctls": [{"name": "kernel.msgmax", "value": "1"}]}
    },
    "privileged": _container(securityContext={"privileged": True}),
    "allowPrivilegeEscalation": _container(securityContext={"capabilities": {"drop": ["ALL"]}}),
    "capabilities": _container(securityContext={**RIGHTS, "capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN"]}}),
    "procMount": {**_container(securityContext={**RIGHTS, "procMount": "Unmasked"}), "hostUsers": False},
    "seLinuxOptions": _container(securityContext={**RIGHTS, "seLinuxOptions": {"type": "spc_t"}}),
    "appArmorProfile": _container(securityContext={**RIGHTS, "appArmorProfile": {"type": "Unconfined"}}),
    "runAsNonRoot": {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}},
    "runAsUser": _container(securityContext={**RIGHTS, "runAsUser": 0, "runAsNonRoot": False}),
    "seccompProfile": {"securityContext": {"runAsNonRoot": True}},
    "hostPort": _container(ports=[{"containerPort": 80, "hostPort": 80}]),
}


async def test_only_daemons_have_privileges_in_an_infrastructure_project(infrastructure: PolicedProject) -> None:
    async with infrastructure.as_user("ann") as ann:
        await infrastructure.create(ann, kinds.PODS, {"metadata": {"name": "plain"}, "spec": restricted_pod()})
        for excess, fields in EXCESSES.items():
            pod = {"metadata": {"name": "excess"}, "spec": restricted_pod(**fields)}
            message = await infrastructure.refusal(ann, kinds.PODS, pod)
            assert "only infrastructure daemons of the project" in message
            assert excess in message.partition("not allowed: ")[2].partition(". Remove")[0].split(", "), message
    labels = {WORKLOAD_LABEL: "watcher", KIND_LABEL: "PinterestDaemon"}
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "watcher", "uid": "1", "controller": True}
    spec = restricted_pod(**EXCESSES["volume etc"], tolerations=[{"operator": "Exists"}])
    daemon = {"metadata": {"name": "watcher-1", "labels": labels, "ownerReferences": [owner]}, "spec": spec}
    async with infrastructure.as_user(DAEMON_SET_CONTROLLER, "system:masters") as controller:
        await infrastructure.create(controller, kinds.PODS, daemon)
    async with infrastructure.as_user("ann") as ann:
        assert "is reserved for" in await infrastructure.refusal(
            ann, kinds.PODS, {**daemon, "metadata": {**daemon["metadata"], "name": "watcher-2"}}
        )


async def test_debug_container_cannot_have_privileges_in_an_infrastructure_project(
    infrastructure: PolicedProject,
) -> None:
    """A deployer of the namespace could otherwise add one to any pod, daemons among them."""
    await infrastructure.create(
        infrastructure.admin, kinds.PODS, {"metadata": {"name": "plain"}, "spec": restricted_pod()}
    )
    debug = {"name": "debug", "image": "busybox:1", "securityContext": {"privileged": True}}
    with pytest.raises(Forbidden, match=r"only infrastructure daemons of the project .* privileged"):
        await infrastructure.admin.patch(
            kinds.PODS, "plain", infrastructure.name, {"spec": {"ephemeralContainers": [debug]}},
            style="merge", manager="tests", subresource="ephemeralcontainers",
        )  # fmt: skip


async def test_deployer_gets_no_shell_in_daemons(infrastructure: PolicedProject, project: PolicedProject) -> None:
    async with infrastructure.as_user("dan") as dan, infrastructure.as_user("olga") as olga:
        for client in (dan, olga):
            with pytest.raises(Forbidden, match="a shell needs the right to change daemons"):
                await exec_into(client, infrastructure.name)
        with pytest.raises(ApiError, match="not found"):
            await exec_into(dan, project.name)
    async with infrastructure.as_user(DESK) as desk:
        with pytest.raises(ApiError, match="not found"):
            await exec_into(desk, infrastructure.name)


PLACEMENTS: tuple[tuple[Object, str], ...] = (
    ({"nodeName": "node-1"}, "nodeName is not allowed"),
    ({"schedulerName": "mine"}, "schedulerName is not allowed"),
    ({"tolerations": [{"operator": "Exists"}]}, "may not tolerate every taint"),
    ({"tolerations": [{"key": "", "operator": "Exists"}]}, "may not tolerate every taint"),
    ({"tolerations": [{"key": "dedicated", "operator": "Exists"}]}, "may not tolerate the taint dedicated"),
    (
        {"tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]},
        "may not tolerate the taint node-role.kubernetes.io/control-plane",
    ),
    (
        {"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]},
        "may not tolerate the taint node.kubernetes.io/unschedulable",
    ),
    ({"runtimeClassName": "gvisor"}, "may not use the runtime class gvisor"),
)


async def test_placement_is_closed_unless_the_project_opens_it(policed: ControlPlane, project: PolicedProject) -> None:
    admin = project.admin
    runtime_class = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "runsc"}
    classes = kinds.Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False)
    await admin.apply({**runtime_class, "metadata": {"name": "gvisor"}}, classes, manager="tests")
    for number, (fields, expected) in enumerate(PLACEMENTS):
        pod = {"metadata": {"name": f"placed-{number}"}, "spec": restricted_pod(**fields)}
        assert expected in await project.refusal(admin, kinds.PODS, pod)
        assert expected in await project.refusal(admin, *templates(pod_template(**fields))[0])
    opened = {"tolerations": ["dedicated"], "runtimeClasses": ["gvisor"]}
    async with policed_project(policed, placement=opened) as other:
        for number, (fields, expected) in enumerate(PLACEMENTS):
            pod = {"metadata": {"name": f"placed-{number}"}, "spec": restricted_pod(**fields)}
            if "the taint dedicated" in expected or "runtime class" in expected:
                await other.create(admin, kinds.PODS, pod)
            else:
                assert expected in await other.refusal(admin, kinds.PODS, pod)
    gpu = _container(resources={"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}})
    needed = {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}
    await project.create(admin, kinds.PODS, {"metadata": {"name": "gpu"}, "spec": restricted_pod(**gpu, **needed)})


async def test_container_gets_defaults_and_cannot_fill_the_disk(project: PolicedProject) -> None:
    pod = {"metadata": {"name": "small"}, "spec": restricted_pod()}
    made = await project.create(project.admin, kinds.PODS, pod)
    assert made["spec"]["containers"][0]["resources"] == {
        "limits": {"ephemeral-storage": "50Gi"},
        "requests": {"cpu": "100m", "memory": "128Mi", "ephemeral-storage": "0"},
    }
    large = _container(resources={"limits": {"ephemeral-storage": "201Gi"}})
    with pytest.raises(Forbidden, match="maximum ephemeral-storage usage per Container is 200Gi"):
        await project.create(
            project.admin, kinds.PODS, {"metadata": {"name": "large"}, "spec": restricted_pod(**large)}
        )


async def test_operator_works_in_projects_only(project: PolicedProject) -> None:
    deployment = dict(templates(pod_template(serviceAccountName=WEB)))[kinds.DEPLOYMENTS]
    config = {"metadata": {"name": "c"}, "data": {"a": "b"}}
    binding = role_binding("pincompute-project-owner", "User", "mallory")
    async with project.as_user(OPERATOR) as operator:
        for place in (KUBE_SYSTEM, SYSTEM_NAMESPACE, "default"):
            for resource, body in (
                (kinds.DEPLOYMENTS, deployment),
                (kinds.CONFIG_MAPS, config),
                (kinds.ROLE_BINDINGS, binding),
            ):
                message = await project.refusal(operator, resource, body, place=place)
                assert f"the operator works in the namespaces of projects only, not in {place}" in message
                assert f"kubectl label namespace {place} pinterest.com/project={place}" in message
        for change in (
            {"labels": {PROJECT_LABEL: "x"}},
            {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}},
        ):
            with pytest.raises(Forbidden, match=f"writes the namespaces of projects only, not {KUBE_SYSTEM}"):
                await operator.patch(
                    kinds.NAMESPACES, KUBE_SYSTEM, "", {"metadata": change}, style="merge", manager="tests"
                )
        assert "writes the namespaces of projects only, not hers" in await project.refusal(
            operator, kinds.NAMESPACES, {"metadata": {"name": "hers", "labels": {PROJECT_LABEL: "hers"}}}
        )


async def test_operator_changes_no_pods_of_others(project: PolicedProject) -> None:
    """With the right to patch pods, the image of any container of the cluster could be replaced."""
    pod = {"metadata": {"name": f"theirs-{project.name}"}, "spec": restricted_pod(priorityClassName="")}
    await project.create(project.admin, kinds.PODS, pod, place=KUBE_SYSTEM)
    image = {"spec": _container(image="evil:1")}
    name = pod["metadata"]["name"]
    async with project.as_user(OPERATOR) as operator:
        with pytest.raises(Forbidden, match="works in the namespaces of projects only, not in kube-system"):
            await operator.patch(kinds.PODS, name, KUBE_SYSTEM, image, style="merge", manager="tests")
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": KUBE_SYSTEM}}
        path = kinds.PODS.path(KUBE_SYSTEM, name, "eviction")
        with pytest.raises(Forbidden, match="works in the namespaces of projects only, not in kube-system"):
            await operator.raw("POST", path, body=json.dumps(eviction).encode())
    await project.admin.delete(kinds.PODS, name, KUBE_SYSTEM)


async def test_operator_uses_the_account_of_the_workload_only(project: PolicedProject) -> None:
    workload = await project.admin.get(CUSTOM_RESOURCES["PinterestService"], WEB, project.name)
    allowed = (kinds.DEPLOYMENTS, kinds.DAEMON_SETS, kinds.STATEFUL_SETS, kinds.JOBS, kinds.CRON_JOBS)
    async with project.as_user(OPERATOR) as operator:
        for account, holds in ((WEB, True), ("default", False), ("ci", False)):
            for resource, body in templates(pod_template(serviceAccountName=account)):
                if resource not in (*allowed, kinds.PYTORCH_JOBS, kinds.TF_JOBS):
                    continue
                owned = {**body, "metadata": {**body["metadata"], "ownerReferences": [owner_of(workload)]}}
                if holds:
                    await project.create(operator, resource, owned)
                    await operator.delete(resource, "borrows", project.name, propagation="Background")
                else:
                    message = await project.refusal(operator, resource, owned)
                    assert "with the service account of their own workload only" in message


async def test_operator_binds_members_to_project_roles_only(project: PolicedProject) -> None:
    owner = "pincompute-project-owner"
    async with project.as_user(OPERATOR) as operator:
        # RBAC allows this one, as the operator has all permissions of its own role.
        message = await project.refusal(operator, kinds.ROLE_BINDINGS, role_binding(OPERATOR, "User", "mallory"))
        assert f"binds members to the roles of projects only, not to {OPERATOR}" in message
        for kind, name, namespace in (
            ("User", OPERATOR, ""),
            ("User", "system:anonymous", ""),
            ("Group", "system:authenticated", ""),
            ("ServiceAccount", "default", SYSTEM_NAMESPACE),
        ):
            grab = role_binding(owner, kind, name, namespace)
            assert "cannot be members of" in await project.refusal(operator, kinds.ROLE_BINDINGS, grab)
        await project.create(operator, kinds.ROLE_BINDINGS, role_binding(owner, "User", "mallory"))


async def test_desk_works_in_projects_only(project: PolicedProject) -> None:
    workload = {"apiVersion": API_VERSION, "kind": "PinterestService", "spec": {"image": "web:1", "port": 8080}}
    async with project.as_user(DESK) as desk:
        for place in (KUBE_SYSTEM, SYSTEM_NAMESPACE):
            for way in ("exec", "portforward"):
                with pytest.raises(
                    Forbidden, match=f"the desk works in the namespaces of projects only, not in {place}"
                ):
                    await exec_into(desk, place, way=way)
            body = {**workload, "metadata": {"name": "web"}}
            message = await project.refusal(desk, CUSTOM_RESOURCES["PinterestService"], body, place=place)
            assert "the desk works in the namespaces of projects only" in message
        for way in ("exec", "portforward"):
            with pytest.raises(ApiError, match="not found"):
                await exec_into(desk, project.name, way=way)
        with pytest.raises(ApiError, match="not found"):
            await exec_into(desk, SYSTEM_NAMESPACE, way="portforward", pod="pincompute-log-store-0")
        with pytest.raises(Forbidden, match="works in the namespaces of projects only"):
            await exec_into(desk, SYSTEM_NAMESPACE, pod="pincompute-log-store-0")
        await project.create(
            desk, CUSTOM_RESOURCES["PinterestService"], {**workload, "metadata": {"name": "by-the-desk"}}
        )


async def test_training_operator_works_in_projects_with_own_accounts_only(project: PolicedProject) -> None:
    labels = {WORKLOAD_LABEL: WEB}
    async with project.as_user("pincompute-kubeflow") as training:
        pod = {"metadata": {"name": "worker"}, "spec": restricted_pod()}
        for place in (KUBE_SYSTEM, SYSTEM_NAMESPACE):
            message = await project.refusal(training, kinds.PODS, pod, place=place)
            assert f"the training operator works in the namespaces of projects only, not in {place}" in message
        for metadata, account in (
            ({"labels": labels}, "ci"),
            ({"labels": {"a": "b"}}, WEB),
            ({"labels": labels}, "default"),
        ):
            borrowed = {"metadata": {"name": "worker", **metadata}, "spec": restricted_pod(serviceAccountName=account)}
            assert "of their own workload only" in await project.refusal(training, kinds.PODS, borrowed)
        own = {"metadata": {"name": "worker", "labels": labels}, "spec": restricted_pod(serviceAccountName=WEB)}
        await project.create(training, kinds.PODS, own)


async def test_storage_agent_creates_volumes_in_its_folder_only(project: PolicedProject) -> None:
    def volume(path: str, **more: Any) -> Object:
        claim = {"claimRef": {"namespace": project.name, "name": "data"}}
        spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": path}}
        return {"metadata": {"name": f"pvc-{project.name}"}, "spec": {**spec, **claim, **more}}

    async with project.as_user("pincompute-storage") as storage:
        for path in ("/", "/etc", "/state/main/data/volumes-of-others", "/state/main/data"):
            message = await project.refusal(storage, kinds.PERSISTENT_VOLUMES, volume(path))
            assert "creates volumes in /state/main/data/volumes only" in message
        unclaimed = volume("/state/main/data/volumes/pvc-1", claimRef=None)
        assert "each for one claim" in await project.refusal(storage, kinds.PERSISTENT_VOLUMES, unclaimed)
        made = await project.create(storage, kinds.PERSISTENT_VOLUMES, volume("/state/main/data/volumes/pvc-1"))
        await storage.delete(kinds.PERSISTENT_VOLUMES, made["metadata"]["name"])


async def test_signer_creates_its_own_secret_only(project: PolicedProject) -> None:
    async with project.as_user(SIGNER, "system:masters") as signer:
        other = {"metadata": {"name": "pincompute-operator"}}
        message = await project.refusal(signer, kinds.SECRETS, other, place=SYSTEM_NAMESPACE)
        assert "the signer creates the Secret pincompute-signer only" in message


async def test_operator_reconciles_under_its_policies(policed: ControlPlane) -> None:
    """The whole loop with the operator's own user and role, not with those of an administrator."""
    async with operated_cluster(policed, policed.access(OPERATOR, ())) as operated:
        await operated.write()
        await operated.wait_settled()
        _, deployment, _ = await operated.natives()
        assert deployment["spec"]["template"]["spec"]["serviceAccountName"] == "hello"
        await operated.write(replicas=2)
        await operated.wait_settled()
        _, deployment, _ = await operated.natives()
        assert deployment["spec"]["replicas"] == 2

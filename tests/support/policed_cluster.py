"""An API server with the roles and admission policies of a platform, for tests that attack them."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
import pytest

from control_plane import ControlPlane
from kubeflow_cluster import kubeflow_cluster
from pincompute.api.names import API_VERSION, ENGINE, KIND_LABEL, OPERATOR, SYSTEM_NAMESPACE, WORKLOAD_LABEL
from pincompute.api.project import Project
from pincompute.controller.resources import ALL_NATIVES, CUSTOM_RESOURCES
from pincompute.engine.bootstrap import read_manifest
from pincompute.kube import resource as kinds
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError, Forbidden, Invalid, NotFound
from pincompute.kube.resource import Object, Resource
from pincompute.planning.kinds.project import plan
from pincompute.planning.snapshot import Cluster, Native, Snapshot
from polling import equals, until
from workloads import cluster_client

POLICY_FILES = ("guard", "tenancy", "landing", "rehearsal", "confinement", "confinement_local")
RBAC_FILES = ("tiers", "roles", "access", "kubeflow")
VOLUMES = "/state/main/data/volumes"
RESOURCES = {
    each.kind: each
    for each in (
        kinds.VALIDATING_ADMISSION_POLICIES,
        kinds.VALIDATING_ADMISSION_POLICY_BINDINGS,
        kinds.PRIORITY_CLASSES,
        kinds.CLUSTER_ROLES,
        kinds.CLUSTER_ROLE_BINDINGS,
        kinds.ROLES,
        kinds.ROLE_BINDINGS,
    )
}
WEB = "web"
"""The workload of every project that these tests create."""
REPLICATION_CONTROLLERS = kinds.Resource("", "v1", "replicationcontrollers", "ReplicationController")
POD_TEMPLATES = kinds.Resource("", "v1", "podtemplates", "PodTemplate")


def manifest_objects(*names: str) -> list[Object]:
    """Objects of manifests, as `pin up` applies them."""
    unused = dict.fromkeys(
        ("address", "authority", "dns_address", "image", "node_address", "pod_logs", "server"), "none"
    )
    objects = (each for name in names for each in read_manifest(name, volumes=VOLUMES, **unused))
    return [each for each in objects if each["kind"] in RESOURCES]


class PolicedProject(NamedTuple):
    """A project that the operator's user has created, with members olga (owner) and dan (deployer)."""

    plane: ControlPlane
    admin: Client
    name: str

    def as_user(self, user: str, *groups: str) -> Client:
        return Client(self.plane.access(user, groups), agent="tests")

    async def create(self, client: Client, resource: Resource, body: Object, *, place: str = "") -> Object:
        metadata = {**body.get("metadata", {}), **({"namespace": place or self.name} if resource.namespaced else {})}
        return await client.create(resource, {**body, "metadata": metadata}, manager="tests")

    async def refusal(self, client: Client, resource: Resource, body: Object, *, place: str = "") -> str:
        """Message with which an admission policy denies an object; fails if the object is created."""
        with pytest.raises((Forbidden, Invalid), match="ValidatingAdmissionPolicy") as refused:
            await self.create(client, resource, body, place=place)
        return refused.value.message


@contextmanager
def policed_plane(plane: ControlPlane) -> Generator[ControlPlane]:
    """Apply roles and policies; delete the policies afterwards, as other tests use the same API server."""
    asyncio.run(_apply_all(plane))
    try:
        yield plane
    finally:
        asyncio.run(_remove_policies(plane))


@asynccontextmanager
async def policed_project(plane: ControlPlane, **spec: Any) -> AsyncGenerator[PolicedProject]:
    async with cluster_client(plane) as admin, Client(plane.access(OPERATOR, ()), agent="tests") as operator:
        name = f"t-{secrets.token_hex(4)}"
        quota: Object = {"on-demand": {}}
        members = {"owner": {"people": ["olga"]}, "deployer": {"people": ["dan"]}}
        document = {
            "apiVersion": API_VERSION,
            "kind": "Project",
            "metadata": {"name": name},
            "spec": {"owner": "team", "review": "open", "members": members, "quota": quota, **spec},
        }
        written = await admin.create(CUSTOM_RESOURCES["Project"], document, manager="tests")
        await _create_objects(operator, msgspec.convert({**written, "kind": "Project"}, Project))
        project = PolicedProject(plane, admin, name)
        await _create_workload(project, operator)
        yield project
        await admin.delete(CUSTOM_RESOURCES["Project"], name)
        await admin.delete(kinds.NAMESPACES, name)


async def _create_objects(operator: Client, project: Project) -> None:
    """Create the planned objects with the rights of the operator. Quotas are left out: nothing counts them here."""
    snapshot = Snapshot(
        owner=project,
        natives=(),
        pods=(),
        cluster=Cluster(name="test", domain="localhost", port=80),
        now=datetime.now(UTC),
    )
    made: list[Object] = []
    done: set[tuple[str, str]] = set()
    while missing := [each for each in plan(snapshot).wanted if (each["kind"], each["metadata"]["name"]) not in done]:
        for each in missing:
            done.add((each["kind"], each["metadata"]["name"]))
            if each["kind"] != "ResourceQuota":
                created = await operator.create(ALL_NATIVES[each["kind"]], each, manager=OPERATOR)
                made.append({**created, "kind": each["kind"]})
        snapshot = snapshot._replace(natives=tuple(msgspec.convert(made, list[Native])))


async def _create_workload(project: PolicedProject, operator: Client) -> None:
    """Create a PinterestService with its service account, as the desk and the operator would."""
    spec = {"image": "web:1", "port": 8080}
    services = CUSTOM_RESOURCES["PinterestService"]
    body = {"apiVersion": API_VERSION, "kind": "PinterestService", "metadata": {"name": WEB}, "spec": spec}
    workload = await project.create(project.admin, services, body)
    labels = {WORKLOAD_LABEL: WEB, KIND_LABEL: "PinterestService"}
    metadata = {"name": WEB, "labels": labels, "ownerReferences": [owner_of(workload)]}
    await project.create(operator, kinds.SERVICE_ACCOUNTS, {"metadata": metadata})


def owner_of(workload: Object) -> Object:
    metadata = workload["metadata"]
    uid = {"name": metadata["name"], "uid": metadata["uid"], "controller": True}
    return {"apiVersion": API_VERSION, "kind": "PinterestService", **uid}


def restricted_pod(**fields: Any) -> Object:
    """Spec of a pod that satisfies the Pod Security level "restricted"."""
    rights = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container = {"name": "main", "image": "busybox:1", "securityContext": rights}
    security = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    return {
        "containers": [container],
        "securityContext": security,
        "priorityClassName": "pincompute-on-demand",
        **fields,
    }


async def _apply_all(plane: ControlPlane) -> None:
    async with kubeflow_cluster(plane) as admin:
        for place in (SYSTEM_NAMESPACE, "kube-system"):
            await admin.apply({"metadata": {"name": place}}, kinds.NAMESPACES, manager=ENGINE)
        objects = manifest_objects(*RBAC_FILES, *POLICY_FILES)
        await asyncio.gather(*(admin.apply(each, RESOURCES[each["kind"]], manager=ENGINE) for each in objects))
        await _bind_edit(admin)
        await _wait_for_policies(plane, admin, denied=True)


async def _bind_edit(admin: Client) -> None:
    """A user of the cluster who may write every built-in and Kubeflow object in every namespace."""
    edit: Object = {
        "metadata": {"name": "test-edit"},
        "rules": [
            {"apiGroups": ["", "apps", "batch", "kubeflow.org"], "resources": ["*"], "verbs": ["*"]},
        ],
    }
    group = "rbac.authorization.k8s.io"
    binding = {
        "metadata": {"name": "test-edit"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "test-edit"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "ann"}],
    }
    await admin.apply(edit, kinds.CLUSTER_ROLES, manager=ENGINE)
    await admin.apply(binding, kinds.CLUSTER_ROLE_BINDINGS, manager=ENGINE)


async def _remove_policies(plane: ControlPlane) -> None:
    async with cluster_client(plane) as admin:
        for each in manifest_objects(*POLICY_FILES):
            try:
                await admin.delete(RESOURCES[each["kind"]], each["metadata"]["name"])
            except NotFound:
                continue
        await admin.delete(kinds.CLUSTER_ROLE_BINDINGS, "test-edit")
        await _wait_for_policies(plane, admin, denied=False)


async def _wait_for_policies(plane: ControlPlane, admin: Client, *, denied: bool) -> None:
    """Wait until one object per policy file is denied, or none is any more: policies take effect with a delay."""
    token = {"type": "kubernetes.io/service-account-token"}
    probes: list[Callable[[], Awaitable[object]]] = [
        lambda: _dry_run(
            admin,
            kinds.SECRETS,
            {**_named("probe", annotations={"kubernetes.io/service-account.name": "a"}), **token},
            SYSTEM_NAMESPACE,
        ),
    ]
    async with asyncio.timeout(60), Client(plane.access(OPERATOR, ("system:masters",)), agent="tests") as operator:
        probes += [
            lambda: _dry_run(operator, kinds.CONFIG_MAPS, _named("probe"), SYSTEM_NAMESPACE),
            lambda: _dry_run(
                admin,
                kinds.PODS,
                {**_named("probe", labels={WORKLOAD_LABEL: "a"}), "spec": restricted_pod(priorityClassName="")},
                SYSTEM_NAMESPACE,
            ),
        ]
        for probe in probes:
            await until(lambda probe=probe: equals(_is_denied(probe), denied), within=60)
    plane.access(OPERATOR, ())


def _named(name: str, **metadata: Any) -> Object:
    return {"metadata": {"name": name, **metadata}}


async def _dry_run(client: Client, resource: Resource, body: Object, place: str) -> None:
    encoded = msgspec.json.encode({"apiVersion": resource.api_version, "kind": resource.kind, **body})
    await client.raw("POST", resource.path(place), query={"dryRun": "All"}, body=encoded)


async def _is_denied(attempt: Callable[[], Awaitable[object]]) -> bool:
    try:
        await attempt()
    except ApiError as error:
        return "ValidatingAdmissionPolicy" in error.message
    return False


def templates(template: Object) -> list[tuple[Resource, Object]]:
    """One object of every kind that creates pods from a template."""
    name = {"metadata": {"name": "borrows"}}
    selected = {**template, "metadata": {"labels": {**template["metadata"]["labels"], "app": "borrows"}}}
    selector = {"selector": {"matchLabels": {"app": "borrows"}}, "template": selected}
    ends = {**template, "spec": {**template["spec"], "restartPolicy": "Never"}}
    role = {"replicas": 1, "restartPolicy": "Never", "template": _named_container(ends, "pytorch")}
    tensorflow = {**role, "template": _named_container(ends, "tensorflow")}
    return [
        (kinds.DEPLOYMENTS, {**name, "spec": selector}),
        (kinds.REPLICA_SETS, {**name, "spec": selector}),
        (kinds.DAEMON_SETS, {**name, "spec": selector}),
        (kinds.STATEFUL_SETS, {**name, "spec": {**selector, "serviceName": "borrows"}}),
        (kinds.JOBS, {**name, "spec": {"template": ends}}),
        (kinds.CRON_JOBS, {**name, "spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": ends}}}}),
        (REPLICATION_CONTROLLERS, {**name, "spec": {"selector": {"app": "borrows"}, "template": selected}}),
        (POD_TEMPLATES, {**name, "template": template}),
        (kinds.PYTORCH_JOBS, {**name, "spec": {"pytorchReplicaSpecs": {"Master": role}}}),
        (kinds.TF_JOBS, {**name, "spec": {"tfReplicaSpecs": {"Worker": tensorflow}}}),
    ]


def _named_container(template: Object, name: str) -> Object:
    (container,) = template["spec"]["containers"]
    return {**template, "spec": {**template["spec"], "containers": [{**container, "name": name}]}}


def pod_template(*, labels: dict[str, str] | None = None, **spec: Any) -> Object:
    return {"metadata": {"labels": labels or {}}, "spec": restricted_pod(**spec)}


async def exec_into(client: Client, place: str, *, way: str = "exec", pod: str = "missing") -> None:
    """Ask for a shell. Admission comes before the pod is looked up, so a missing one shows whether it passed."""
    query = {"command": "sh", "stdout": "true"} if way != "portforward" else {"ports": "80"}
    await client.raw("POST", kinds.PODS.path(place, pod, way), query=query)


def role_binding(role: str, kind: str, name: str, namespace: str = "") -> Object:
    subject = {"kind": kind, "name": name, **({"namespace": namespace} if namespace else {})}
    group = {} if kind == "ServiceAccount" else {"apiGroup": "rbac.authorization.k8s.io"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    return {"metadata": {"name": "grab"}, "roleRef": reference, "subjects": [{**group, **subject}]}

"""Execution of steps against a real API server: evictions, image patches, claims, conflicts."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from control_plane import ControlPlane
from pincompute.api.names import (
    ENGINE,
    PARTS_ANNOTATION,
    REQUESTED_SIZE_ANNOTATION,
    TEMPLATE_HASH_LABEL,
    WORKLOAD_LABEL,
)
from pincompute.base.problem import Refused
from pincompute.controller.apply import apply_step
from pincompute.controller.resources import WORKLOAD_NATIVES
from pincompute.kube.client import Client
from pincompute.kube.errors import Conflict, NotFound
from pincompute.kube.resource import (
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    REPLICA_SETS,
    SERVICE_ACCOUNTS,
    STORAGE_CLASSES,
    Resource,
)
from pincompute.objects.content import Object
from pincompute.planning.snapshot import NativeMetadata
from pincompute.planning.steps import Apply, Create, Evict, PatchImages, SidecarImage
from workloads import cluster_client, new_project

pytestmark = pytest.mark.cluster


async def create_pod(client: Client, project: str) -> Object:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": project}}
    await client.apply(account, SERVICE_ACCOUNTS, manager=ENGINE)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "db-2", "namespace": project},
        "spec": {"containers": [{"name": "db", "image": "db:1"}]},
    }
    return await client.create(PODS, pod, manager=ENGINE)


async def test_evicts_only_the_pod_with_the_planned_uid(plane: ControlPlane) -> None:
    async with cluster_client(plane) as client:
        project = await new_project(client)
        pod = await create_pod(client, project)
        await apply_step(client, project, Evict("db-2", "00000000-0000-0000-0000-000000000000"))
        assert (await client.get(PODS, "db-2", project))["metadata"]["uid"] == pod["metadata"]["uid"]
        await apply_step(client, project, Evict("db-2", pod["metadata"]["uid"]))
        with pytest.raises(NotFound):
            await client.get(PODS, "db-2", project)
        await apply_step(client, project, Evict("db-2", pod["metadata"]["uid"]))


SIDECARS = [{"name": name, "image": f"{name}:1", "restartPolicy": "Always"} for name in ("identity", "logs")]
LABELS, ANNOTATIONS = {TEMPLATE_HASH_LABEL: "new"}, {PARTS_ANNOTATION: "identity-1 logs-2"}


def pod_template() -> Object:
    metadata = {
        "labels": {WORKLOAD_LABEL: "web", TEMPLATE_HASH_LABEL: "old"},
        "annotations": {PARTS_ANNOTATION: "identity-1 logs-1"},
    }
    return {
        "metadata": metadata,
        "spec": {"containers": [{"name": "web", "image": "web:1"}], "initContainers": SIDECARS},
    }


def images(template: Object) -> list[str]:
    return [each["image"] for each in (*template["spec"]["initContainers"], *template["spec"]["containers"])]


async def test_patches_sidecar_image_of_pod(plane: ControlPlane) -> None:
    async with cluster_client(plane) as client:
        project = await new_project(client)
        await create_pod(client, project)
        body = pod_template()
        metadata = {**body["metadata"], "name": "web-1", "namespace": project}
        pod = {"apiVersion": "v1", "kind": "Pod", "spec": body["spec"], "metadata": metadata}
        before = await client.create(PODS, pod, manager=ENGINE)
        step = PatchImages(
            "Pod", "web-1", before["metadata"]["uid"], (SidecarImage(1, "logs", "logs:2"),), LABELS, ANNOTATIONS
        )
        with pytest.raises(Refused):
            await apply_step(client, project, step._replace(uid="00000000-0000-0000-0000-000000000000"))
        with pytest.raises(Refused):
            await apply_step(client, project, step._replace(sidecars=(SidecarImage(0, "logs", "logs:2"),)))
        assert images(await client.get(PODS, "web-1", project)) == images(before)
        after = await apply_step(client, project, step)
        assert after is not None
        assert images(after) == ["identity:1", "logs:2", "web:1"]
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert after["metadata"]["labels"][TEMPLATE_HASH_LABEL] == "new"
        assert after["metadata"]["annotations"] == ANNOTATIONS
        await client.delete(PODS, "web-1", project)
        # A missing pod is no error: its replacement has the new image.
        assert await apply_step(client, project, step._replace(name="web-2")) is None


async def test_patches_sidecar_image_in_replica_set_template(plane: ControlPlane) -> None:
    async with cluster_client(plane) as client:
        project = await new_project(client)
        made = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": "web-5d8",
                "namespace": project,
                "labels": {WORKLOAD_LABEL: "web", TEMPLATE_HASH_LABEL: "old"},
            },
            "spec": {"replicas": 0, "selector": {"matchLabels": {WORKLOAD_LABEL: "web"}}, "template": pod_template()},
        }
        before = await client.create(REPLICA_SETS, made, manager=ENGINE)
        sidecars = (SidecarImage(0, "identity", "identity:1"), SidecarImage(1, "logs", "logs:2"))
        after = await apply_step(
            client,
            project,
            PatchImages("ReplicaSet", "web-5d8", before["metadata"]["uid"], sidecars, LABELS, ANNOTATIONS),
        )
        assert after is not None
        template = after["spec"]["template"]
        assert images(template) == ["identity:1", "logs:2", "web:1"]
        assert template["metadata"] == {
            "labels": {WORKLOAD_LABEL: "web", TEMPLATE_HASH_LABEL: "new"}, "annotations": ANNOTATIONS
        }  # fmt: skip
        assert after["metadata"]["labels"] == {WORKLOAD_LABEL: "web", TEMPLATE_HASH_LABEL: "new"}


async def create_bound_claim(client: Client, project: str) -> Object:
    disks = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": project},
        "provisioner": "example.com/disks",
        "allowVolumeExpansion": True,
    }
    await client.create(STORAGE_CLASSES, disks, manager=ENGINE)
    claim: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data-db-0", "namespace": project, "labels": {WORKLOAD_LABEL: "db"}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": project,
            "resources": {"requests": {"storage": "5Gi"}},
            "volumeName": "pv-1",
        },
    }
    made = await client.create(PERSISTENT_VOLUME_CLAIMS, claim, manager=ENGINE)
    status = {"status": {"phase": "Bound", "capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"]}}
    await client.patch(
        PERSISTENT_VOLUME_CLAIMS, "data-db-0", project, status, style="merge", manager=ENGINE, subresource="status"
    )
    return made


async def test_enlarges_claim_and_keeps_its_other_fields(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WORKLOAD_NATIVES, PERSISTENT_VOLUME_CLAIMS.kind, PERSISTENT_VOLUME_CLAIMS)
    async with cluster_client(plane) as client:
        project = await new_project(client)
        made = await create_bound_claim(client, project)
        grown = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data-db-0", "namespace": project, "annotations": {REQUESTED_SIZE_ANNOTATION: "10Gi"}},
            "spec": {"resources": {"requests": {"storage": "10Gi"}}},
        }
        after = await apply_step(client, project, Apply(grown, made["metadata"]["uid"]))
        assert after is not None
        assert after["spec"]["resources"]["requests"]["storage"] == "10Gi"
        assert after["metadata"]["annotations"][REQUESTED_SIZE_ANNOTATION] == "10Gi"
        assert after["metadata"]["labels"] == {WORKLOAD_LABEL: "db"}
        assert after["spec"]["storageClassName"] == project


class InterruptedClient(Client):
    """A client that simulates a write of another manager after every read."""

    async def get(self, resource: Resource, name: str, namespace: str = "") -> dict[str, Any]:
        found = await super().get(resource, name, namespace)
        body = {"metadata": {"labels": {"read": found["metadata"]["resourceVersion"]}}}
        await self.patch(resource, name, namespace, body, style="merge", manager=ENGINE)
        return found


async def test_write_between_read_and_apply_is_a_conflict(plane: ControlPlane) -> None:
    async with (
        cluster_client(plane) as client,
        InterruptedClient(plane.access(), agent="operator") as interrupted_client,
    ):
        project = await new_project(client)
        native = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": project}}
        made = await apply_step(client, project, Create({**native, "data": {"a": "1"}}))
        assert made is not None
        step = Apply({**native, "data": {"b": "2"}}, made["metadata"]["uid"])
        with pytest.raises(Conflict):
            await apply_step(interrupted_client, project, step)
        after = await apply_step(client, project, step)
        assert after is not None
        assert after["data"] == {"b": "2"}


class ReadCountingClient(Client):
    """Counts reads."""

    reads = 0

    async def get(self, resource: Resource, name: str, namespace: str = "") -> dict[str, Any]:
        self.reads += 1
        return await super().get(resource, name, namespace)


async def test_second_apply_needs_no_read(plane: ControlPlane) -> None:
    async with ReadCountingClient(plane.access(), agent="operator") as client:
        project = await new_project(client)
        native = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": project}}
        made = await apply_step(client, project, Create({**native, "data": {"a": "1"}}))
        for number, reads in (("2", 1), ("3", 1)):
            assert made is not None
            metadata = msgspec.convert(made["metadata"], NativeMetadata)
            step = Apply({**native, "data": {number: number}}, metadata.uid, metadata.only_applied)
            made = await apply_step(client, project, step)
            assert made is not None
            assert made["data"] == {number: number}
            assert client.reads == reads

"""Steps beside the usual ones, against a real API server: a copy makes room, and a claim grows."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from control_plane import ControlPlane
from pincompute.api.names import ENGINE, PARTS, SIZE, TEMPLATE, WORKLOAD
from pincompute.base.problem import Refused
from pincompute.controller.act import act
from pincompute.controller.resources import NATIVES
from pincompute.kube.client import Client
from pincompute.kube.errors import Conflict, NotFound
from pincompute.kube.resource import CLAIMS, PODS, REPLICA_SETS, SERVICE_ACCOUNTS, STORAGE_CLASSES, Resource
from pincompute.objects.content import Object
from pincompute.planning.snapshot import NativeMetadata
from pincompute.planning.steps import Apply, Create, Evict, Renew, Sidecar
from workloads import cluster, new_project

pytestmark = pytest.mark.cluster


async def made_pod(client: Client, project: str) -> Object:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": project}}
    await client.apply(account, SERVICE_ACCOUNTS, manager=ENGINE)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "db-2", "namespace": project},
        "spec": {"containers": [{"name": "db", "image": "db:1"}]},
    }
    return await client.create(PODS, pod, manager=ENGINE)


async def test_a_pod_makes_room_and_only_the_one_that_was_meant(plane: ControlPlane) -> None:
    async with cluster(plane) as client:
        project = await new_project(client)
        pod = await made_pod(client, project)
        await act(client, project, Evict("db-2", "00000000-0000-0000-0000-000000000000"))
        assert (await client.get(PODS, "db-2", project))["metadata"]["uid"] == pod["metadata"]["uid"]
        await act(client, project, Evict("db-2", pod["metadata"]["uid"]))
        with pytest.raises(NotFound):
            await client.get(PODS, "db-2", project)
        await act(client, project, Evict("db-2", pod["metadata"]["uid"]))


SIDECARS = [{"name": name, "image": f"{name}:1", "restartPolicy": "Always"} for name in ("identity", "logs")]
LABELS, ANNOTATIONS = {TEMPLATE: "new"}, {PARTS: "identity-1 logs-2"}


def pod_template() -> Object:
    metadata = {"labels": {WORKLOAD: "web", TEMPLATE: "old"}, "annotations": {PARTS: "identity-1 logs-1"}}
    return {
        "metadata": metadata,
        "spec": {"containers": [{"name": "web", "image": "web:1"}], "initContainers": SIDECARS},
    }


def images(template: Object) -> list[str]:
    return [each["image"] for each in (*template["spec"]["initContainers"], *template["spec"]["containers"])]


async def test_a_sidecar_of_a_pod_gets_another_image(plane: ControlPlane) -> None:
    async with cluster(plane) as client:
        project = await new_project(client)
        await made_pod(client, project)
        body = pod_template()
        metadata = {**body["metadata"], "name": "web-1", "namespace": project}
        pod = {"apiVersion": "v1", "kind": "Pod", "spec": body["spec"], "metadata": metadata}
        before = await client.create(PODS, pod, manager=ENGINE)
        step = Renew("Pod", "web-1", before["metadata"]["uid"], (Sidecar(1, "logs", "logs:2"),), LABELS, ANNOTATIONS)
        with pytest.raises(Refused):
            await act(client, project, step._replace(uid="00000000-0000-0000-0000-000000000000"))
        with pytest.raises(Refused):
            await act(client, project, step._replace(sidecars=(Sidecar(0, "logs", "logs:2"),)))
        assert images(await client.get(PODS, "web-1", project)) == images(before)
        after = await act(client, project, step)
        assert after is not None
        assert images(after) == ["identity:1", "logs:2", "web:1"]
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert after["metadata"]["labels"][TEMPLATE] == "new"
        assert after["metadata"]["annotations"] == ANNOTATIONS
        await client.delete(PODS, "web-1", project)
        # Its node would end it in time; here is none.
        assert await act(client, project, step._replace(name="web-2")) is None


async def test_what_a_deployment_makes_pods_by_gets_it_too(plane: ControlPlane) -> None:
    async with cluster(plane) as client:
        project = await new_project(client)
        made = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "web-5d8", "namespace": project, "labels": {WORKLOAD: "web", TEMPLATE: "old"}},
            "spec": {"replicas": 0, "selector": {"matchLabels": {WORKLOAD: "web"}}, "template": pod_template()},
        }
        before = await client.create(REPLICA_SETS, made, manager=ENGINE)
        sidecars = (Sidecar(0, "identity", "identity:1"), Sidecar(1, "logs", "logs:2"))
        after = await act(
            client, project, Renew("ReplicaSet", "web-5d8", before["metadata"]["uid"], sidecars, LABELS, ANNOTATIONS)
        )
        assert after is not None
        template = after["spec"]["template"]
        assert images(template) == ["identity:1", "logs:2", "web:1"]
        assert template["metadata"] == {
            "labels": {WORKLOAD: "web", TEMPLATE: "new"}, "annotations": ANNOTATIONS
        }  # fmt: skip
        assert after["metadata"]["labels"] == {WORKLOAD: "web", TEMPLATE: "new"}


async def bound_claim(client: Client, project: str) -> Object:
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
        "metadata": {"name": "data-db-0", "namespace": project, "labels": {WORKLOAD: "db"}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": project,
            "resources": {"requests": {"storage": "5Gi"}},
            "volumeName": "pv-1",
        },
    }
    made = await client.create(CLAIMS, claim, manager=ENGINE)
    status = {"status": {"phase": "Bound", "capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"]}}
    await client.patch(CLAIMS, "data-db-0", project, status, style="merge", manager=ENGINE, subresource="status")
    return made


async def test_a_claim_grows_and_is_otherwise_left_alone(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NATIVES, CLAIMS.kind, CLAIMS)
    async with cluster(plane) as client:
        project = await new_project(client)
        made = await bound_claim(client, project)
        grown = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data-db-0", "namespace": project, "annotations": {SIZE: "10Gi"}},
            "spec": {"resources": {"requests": {"storage": "10Gi"}}},
        }
        after = await act(client, project, Apply(grown, made["metadata"]["uid"]))
        assert after is not None
        assert after["spec"]["resources"]["requests"]["storage"] == "10Gi"
        assert after["metadata"]["annotations"][SIZE] == "10Gi"
        assert after["metadata"]["labels"] == {WORKLOAD: "db"}
        assert after["spec"]["storageClassName"] == project


class Interrupted(Client):
    """Whatever it reads, somebody else writes right after."""

    async def get(self, resource: Resource, name: str, namespace: str = "") -> dict[str, Any]:
        found = await super().get(resource, name, namespace)
        body = {"metadata": {"labels": {"read": found["metadata"]["resourceVersion"]}}}
        await self.patch(resource, name, namespace, body, style="merge", manager=ENGINE)
        return found


async def test_who_writes_in_between_causes_another_pass_and_no_complaint(plane: ControlPlane) -> None:
    async with cluster(plane) as client, Interrupted(plane.access(), agent="operator") as interrupted:
        project = await new_project(client)
        native = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": project}}
        made = await act(client, project, Create({**native, "data": {"a": "1"}}))
        assert made is not None
        step = Apply({**native, "data": {"b": "2"}}, made["metadata"]["uid"])
        with pytest.raises(Conflict):
            await act(interrupted, project, step)
        after = await act(client, project, step)
        assert after is not None
        assert after["data"] == {"b": "2"}


class Unread(Client):
    """It counts what it reads."""

    reads = 0

    async def get(self, resource: Resource, name: str, namespace: str = "") -> dict[str, Any]:
        self.reads += 1
        return await super().get(resource, name, namespace)


async def test_what_was_applied_before_is_not_read_to_apply_it_again(plane: ControlPlane) -> None:
    async with Unread(plane.access(), agent="operator") as client:
        project = await new_project(client)
        native = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": project}}
        made = await act(client, project, Create({**native, "data": {"a": "1"}}))
        for number, reads in (("2", 1), ("3", 1)):
            assert made is not None
            metadata = msgspec.convert(made["metadata"], NativeMetadata)
            step = Apply({**native, "data": {number: number}}, metadata.uid, metadata.applied)
            made = await act(client, project, step)
            assert made is not None
            assert made["data"] == {number: number}
            assert client.reads == reads

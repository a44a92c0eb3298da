"""Steps beside the usual ones, against a real API server: a copy makes room, and a claim grows."""

from __future__ import annotations

from typing import Any

import pytest

from control_plane import ControlPlane
from pincompute.api.names import ENGINE, SIZE, WORKLOAD
from pincompute.controller.act import act
from pincompute.controller.resources import NATIVES
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.kube.resource import CLAIMS, PODS, SERVICE_ACCOUNTS, STORAGE_CLASSES
from pincompute.objects.content import Object
from pincompute.planning.steps import Apply, Evict
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

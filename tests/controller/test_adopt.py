"""Adoption of existing objects, on a real API server."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from control_plane import ControlPlane
from pincompute.api.names import API_VERSION, CLI_MANAGER, ENGINE, KIND_LABEL, WANTED_HASH_ANNOTATION, WORKLOAD_LABEL
from pincompute.controller.apply import apply_step
from pincompute.kube.client import Client
from pincompute.kube.errors import Conflict
from pincompute.kube.resource import PODS, SERVICE_ACCOUNTS, SERVICES, Object
from pincompute.objects.owners import owner_reference
from pincompute.planning.steps import Adopt, Apply, LabelPods
from workloads import cluster_client, new_project

pytestmark = pytest.mark.cluster

OURS = owner_reference(API_VERSION, "PinterestService", "web", "owner-1")
THEIRS = owner_reference("example.com/v1", "Shop", "web", "owner-0")
PORT: Object = {"port": 80, "targetPort": 8080, "protocol": "TCP"}


async def create_foreign_service(client: Client, project: str) -> Object:
    """A Service of another owner, with more fields than ours would have."""
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": project, "labels": {"app": "web"}, "ownerReferences": [THEIRS]},
        "spec": {
            "selector": {"app": "web", "colour": "blue"},
            "sessionAffinity": "ClientIP",
            "ports": [{**PORT, "name": "http"}, {"name": "admin", "port": 81}],
        },
    }
    await client.create(SERVICES, service, manager="kubectl")
    label = {"metadata": {"labels": {WORKLOAD_LABEL: "web"}}}
    return await client.patch(SERVICES, "web", project, label, style="merge", manager=CLI_MANAGER)


def wanted_service(project: str, **spec: Any) -> Object:
    metadata: Object = {
        "name": "web",
        "namespace": project,
        "labels": {WORKLOAD_LABEL: "web", KIND_LABEL: "PinterestService"},
    }
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {**metadata, "annotations": {WANTED_HASH_ANNOTATION: "digest"}, "ownerReferences": [OURS]},
        "spec": {"selector": {WORKLOAD_LABEL: "web"}, "ports": [{**PORT, "name": "http"}], **spec},
    }


async def test_adopted_object_loses_fields_of_its_former_owner(plane: ControlPlane) -> None:
    async with cluster_client(plane) as client:
        project = await new_project(client)
        before = await create_foreign_service(client, project)
        uid = before["metadata"]["uid"]
        after = await apply_step(client, project, Adopt(wanted_service(project), uid))
        assert after is not None
        assert after["metadata"]["ownerReferences"] == [OURS]
        assert after["spec"]["selector"] == {WORKLOAD_LABEL: "web"}
        assert after["spec"]["ports"] == [{**PORT, "name": "http"}]
        assert after["spec"]["sessionAffinity"] == "None"
        # Clients of the Service do not notice, and labels that we do not set are kept.
        assert (after["metadata"]["uid"], after["spec"]["clusterIP"]) == (uid, before["spec"]["clusterIP"])
        assert after["metadata"]["labels"]["app"] == "web"
        # From here on it is as if we had created it.
        other = [{"port": 82, "targetPort": 8080, "protocol": "TCP"}]
        changed = await apply_step(client, project, Apply(wanted_service(project, ports=other), uid))
        assert changed is not None
        assert changed["spec"]["ports"] == other


class KilledError(Exception):
    """Stands for a crash of the operator."""


@pytest.mark.parametrize("writes", [1, 2, 3])
async def test_crash_during_adoption_leads_to_the_same_result(plane: ControlPlane, writes: int) -> None:
    async with cluster_client(plane) as client:
        undisturbed, crashed = await new_project(client), await new_project(client)
        for each in (undisturbed, crashed):
            await create_foreign_service(client, each)
        uids = [(await client.get(SERVICES, "web", each))["metadata"]["uid"] for each in (undisturbed, crashed)]
        await apply_step(client, undisturbed, Adopt(wanted_service(undisturbed), uids[0]))
        with pytest.raises(KilledError):
            await apply_step(
                cast("Client", CrashingClient(client, writes)), crashed, Adopt(wanted_service(crashed), uids[1])
            )
        # The object is ours after the first write, so the next pass applies what is wanted_service.
        await apply_step(client, crashed, Apply(wanted_service(crashed), uids[1]))
        one, other = [await client.get(SERVICES, "web", each) for each in (undisturbed, crashed)]
        for field in ("selector", "ports", "sessionAffinity", "type"):
            assert one["spec"][field] == other["spec"][field]
        assert field_ownership(one) == field_ownership(other)


class CrashingClient:
    """A client that crashes after a number of writes."""

    def __init__(self, client: Client, writes: int) -> None:
        self._client = client
        self._writes_left = writes

    async def get(self, *arguments: Any, **keywords: Any) -> Object:
        return await self._client.get(*arguments, **keywords)

    async def patch(self, *arguments: Any, **keywords: Any) -> Object:
        return self._count_write(await self._client.patch(*arguments, **keywords))

    async def apply(self, *arguments: Any, **keywords: Any) -> Object:
        return self._count_write(await self._client.apply(*arguments, **keywords))

    def _count_write(self, after: Object) -> Object:
        self._writes_left -= 1
        if not self._writes_left:
            raise KilledError
        return after


def field_ownership(native: Object) -> list[tuple[str, str, Object]]:
    entries = native["metadata"]["managedFields"]
    return sorted(((each["manager"], each["operation"], each["fieldsV1"]) for each in entries), key=str)


async def test_rejects_adoption_of_another_uid(plane: ControlPlane) -> None:
    async with cluster_client(plane) as client:
        project = await new_project(client)
        before = await create_foreign_service(client, project)
        with pytest.raises(Conflict):
            await apply_step(client, project, Adopt(wanted_service(project), "00000000-0000-0000-0000-000000000000"))
        assert await client.get(SERVICES, "web", project) == before


async def test_labels_existing_pods_of_replica_set(plane: ControlPlane) -> None:
    async with cluster_client(plane) as client:
        project = await new_project(client)
        account = {"metadata": {"name": "default", "namespace": project}}
        await client.create(SERVICE_ACCOUNTS, account, manager=ENGINE)
        owner_uids = {"web-a": "set-1", "web-b": "set-1", "other": "set-2"}
        pods = await asyncio.gather(*(_create_pod(client, project, *each) for each in owner_uids.items()))
        await apply_step(client, project, LabelPods("web", "set-1", {WORKLOAD_LABEL: "web"}))
        after = {each["metadata"]["name"]: each for each in (await client.list(PODS, project)).items}
        assert {name for name, each in after.items() if each["metadata"]["labels"].get(WORKLOAD_LABEL)} == {
            "web-a",
            "web-b",
        }
        assert {each["metadata"]["uid"] for each in after.values()} == {each["metadata"]["uid"] for each in pods}
        assert after["web-a"]["metadata"]["labels"]["app"] == "web"
        # Repeating it changes nothing.
        await apply_step(client, project, LabelPods("web", "set-1", {WORKLOAD_LABEL: "web"}))
        assert (await client.get(PODS, "web-a", project))["metadata"] == after["web-a"]["metadata"]


async def _create_pod(client: Client, project: str, name: str, uid: str) -> Object:
    reference = owner_reference("apps/v1", "ReplicaSet", "web", uid)
    metadata = {"name": name, "namespace": project, "labels": {"app": "web"}, "ownerReferences": [reference]}
    pod = {"metadata": metadata, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    return await client.create(PODS, pod, manager=ENGINE)

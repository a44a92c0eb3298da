"""What was there before a workload becomes its own, on a real API server."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from control_plane import ControlPlane
from pincompute.api.names import API_VERSION, ENGINE, HAND, KIND, WANTED, WORKLOAD
from pincompute.controller.act import act
from pincompute.kube.client import Client
from pincompute.kube.errors import Conflict
from pincompute.kube.resource import PODS, SERVICE_ACCOUNTS, SERVICES, Object
from pincompute.objects.owners import owner_reference
from pincompute.planning.steps import Adopt, Apply, Mark
from workloads import cluster, new_project

pytestmark = pytest.mark.cluster

OURS = owner_reference(API_VERSION, "PinterestService", "web", "owner-1")
THEIRS = owner_reference("example.com/v1", "Shop", "web", "owner-0")
PORT: Object = {"port": 80, "targetPort": 8080, "protocol": "TCP"}


async def found(client: Client, project: str) -> Object:
    """As others wrote it: more than ours would say, and with an owner of theirs."""
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
    label = {"metadata": {"labels": {WORKLOAD: "web"}}}
    return await client.patch(SERVICES, "web", project, label, style="merge", manager=HAND)


def wanted(project: str, **spec: Any) -> Object:
    metadata: Object = {"name": "web", "namespace": project, "labels": {WORKLOAD: "web", KIND: "PinterestService"}}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {**metadata, "annotations": {WANTED: "digest"}, "ownerReferences": [OURS]},
        "spec": {"selector": {WORKLOAD: "web"}, "ports": [{**PORT, "name": "http"}], **spec},
    }


async def test_what_others_wrote_is_ours_to_take_away(plane: ControlPlane) -> None:
    async with cluster(plane) as client:
        project = await new_project(client)
        before = await found(client, project)
        uid = before["metadata"]["uid"]
        after = await act(client, project, Adopt(wanted(project), uid))
        assert after is not None
        assert after["metadata"]["ownerReferences"] == [OURS]
        assert after["spec"]["selector"] == {WORKLOAD: "web"}
        assert after["spec"]["ports"] == [{**PORT, "name": "http"}]
        assert after["spec"]["sessionAffinity"] == "None"
        # Nobody who asks it notices, and what others say of it beside stays theirs.
        assert (after["metadata"]["uid"], after["spec"]["clusterIP"]) == (uid, before["spec"]["clusterIP"])
        assert after["metadata"]["labels"]["app"] == "web"
        # From now on it is as if we had made it ourselves.
        other = [{"port": 82, "targetPort": 8080, "protocol": "TCP"}]
        changed = await act(client, project, Apply(wanted(project, ports=other), uid))
        assert changed is not None
        assert changed["spec"]["ports"] == other


class KilledError(Exception):
    """Whoever wrote was killed."""


@pytest.mark.parametrize("writes", [1, 2, 3])
async def test_whoever_begins_anew_comes_to_the_same(plane: ControlPlane, writes: int) -> None:
    async with cluster(plane) as client:
        straight, broken = await new_project(client), await new_project(client)
        for each in (straight, broken):
            await found(client, each)
        uids = [(await client.get(SERVICES, "web", each))["metadata"]["uid"] for each in (straight, broken)]
        await act(client, straight, Adopt(wanted(straight), uids[0]))
        with pytest.raises(KilledError):
            await act(cast("Client", Ending(client, writes)), broken, Adopt(wanted(broken), uids[1]))
        # It is ours by then, so the next pass applies what it wants.
        await act(client, broken, Apply(wanted(broken), uids[1]))
        one, other = [await client.get(SERVICES, "web", each) for each in (straight, broken)]
        for field in ("selector", "ports", "sessionAffinity", "type"):
            assert one["spec"][field] == other["spec"][field]
        assert on_record(one) == on_record(other)


class Ending:
    """A client whose owner is killed when so much was written."""

    def __init__(self, client: Client, writes: int) -> None:
        self._client = client
        self._left = writes

    async def get(self, *arguments: Any, **words: Any) -> Object:
        return await self._client.get(*arguments, **words)

    async def patch(self, *arguments: Any, **words: Any) -> Object:
        return self._written(await self._client.patch(*arguments, **words))

    async def apply(self, *arguments: Any, **words: Any) -> Object:
        return self._written(await self._client.apply(*arguments, **words))

    def _written(self, after: Object) -> Object:
        self._left -= 1
        if not self._left:
            raise KilledError
        return after


def on_record(native: Object) -> list[tuple[str, str, Object]]:
    entries = native["metadata"]["managedFields"]
    return sorted(((each["manager"], each["operation"], each["fieldsV1"]) for each in entries), key=str)


async def test_only_the_very_one_that_was_asked_for(plane: ControlPlane) -> None:
    async with cluster(plane) as client:
        project = await new_project(client)
        before = await found(client, project)
        with pytest.raises(Conflict):
            await act(client, project, Adopt(wanted(project), "00000000-0000-0000-0000-000000000000"))
        assert await client.get(SERVICES, "web", project) == before


async def test_copies_bear_the_labels_of_what_they_belong_to_now(plane: ControlPlane) -> None:
    async with cluster(plane) as client:
        project = await new_project(client)
        account = {"metadata": {"name": "default", "namespace": project}}
        await client.create(SERVICE_ACCOUNTS, account, manager=ENGINE)
        maker = {"web-a": "set-1", "web-b": "set-1", "other": "set-2"}
        pods = await asyncio.gather(*(_pod(client, project, *each) for each in maker.items()))
        await act(client, project, Mark("web", "set-1", {WORKLOAD: "web"}))
        after = {each["metadata"]["name"]: each for each in (await client.list(PODS, project)).items}
        assert {name for name, each in after.items() if each["metadata"]["labels"].get(WORKLOAD)} == {"web-a", "web-b"}
        assert {each["metadata"]["uid"] for each in after.values()} == {each["metadata"]["uid"] for each in pods}
        assert after["web-a"]["metadata"]["labels"]["app"] == "web"
        # Once more finds nothing to do.
        await act(client, project, Mark("web", "set-1", {WORKLOAD: "web"}))
        assert (await client.get(PODS, "web-a", project))["metadata"] == after["web-a"]["metadata"]


async def _pod(client: Client, project: str, name: str, uid: str) -> Object:
    reference = owner_reference("apps/v1", "ReplicaSet", "web", uid)
    metadata = {"name": name, "namespace": project, "labels": {"app": "web"}, "ownerReferences": [reference]}
    pod = {"metadata": metadata, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    return await client.create(PODS, pod, manager=ENGINE)

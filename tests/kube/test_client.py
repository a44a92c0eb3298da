"""Client against a real API server."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace

import msgspec
import pytest

from control_plane import ControlPlane
from pincompute.base.problem import Refused
from pincompute.kube.client import Client
from pincompute.kube.errors import AlreadyExists, Conflict, Forbidden, Gone, Invalid, NotFound, Unreachable
from pincompute.kube.request import select
from pincompute.kube.resource import CONFIG_MAPS, NAMESPACES, PODS, SERVICES, Object
from pincompute.kube.transport import ClientLimits
from pincompute.kube.watch import parse_event, parse_identity
from widgets import define_widgets

pytestmark = pytest.mark.cluster


def settings(namespace: str, name: str = "settings", **data: str) -> Object:
    return {"metadata": {"name": name, "namespace": namespace}, "data": data}


async def test_create_get_delete(client: Client, namespace: str) -> None:
    created = await client.create(CONFIG_MAPS, settings(namespace, color="red"), manager="test")
    assert await client.get(CONFIG_MAPS, "settings", namespace) == created
    with pytest.raises(AlreadyExists):
        await client.create(CONFIG_MAPS, settings(namespace), manager="test")
    await client.delete(CONFIG_MAPS, "settings", namespace)
    with pytest.raises(NotFound) as caught:
        await client.get(CONFIG_MAPS, "settings", namespace)
    assert str(caught.value.problem().where) == f"configmaps {namespace}/settings"


async def test_identical_apply_keeps_resource_version(client: Client, namespace: str) -> None:
    first = await client.apply(settings(namespace, color="red"), CONFIG_MAPS, manager="test")
    again = await client.apply(settings(namespace, color="red"), CONFIG_MAPS, manager="test")
    assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_apply_removes_fields_no_longer_given(client: Client, namespace: str) -> None:
    await client.apply(settings(namespace, color="red", size="2"), CONFIG_MAPS, manager="test")
    after = await client.apply(settings(namespace, color="red"), CONFIG_MAPS, manager="test")
    assert after["data"] == {"color": "red"}


async def test_apply_without_force_names_conflicting_manager(client: Client, namespace: str) -> None:
    await client.apply(settings(namespace, color="red"), CONFIG_MAPS, manager="alice")
    with pytest.raises(Conflict) as caught:
        await client.apply(settings(namespace, color="blue"), CONFIG_MAPS, manager="bob", force=False)
    assert 'conflict with "alice"' in caught.value.text()
    assert ".data.color" in caught.value.text()
    forced = await client.apply(settings(namespace, color="blue"), CONFIG_MAPS, manager="bob")
    assert forced["data"] == {"color": "blue"}


async def test_merge_patch_and_json_patch(client: Client, namespace: str) -> None:
    await client.create(CONFIG_MAPS, settings(namespace, color="red", size="2"), manager="test")
    merge = {"data": {"color": None, "shape": "round"}}
    merged = await client.patch(CONFIG_MAPS, "settings", namespace, merge, style="merge", manager="test")
    assert merged["data"] == {"size": "2", "shape": "round"}
    steps = [{"op": "test", "path": "/data/size", "value": "2"}, {"op": "remove", "path": "/data/size"}]
    patched = await client.patch(CONFIG_MAPS, "settings", namespace, steps, style="json", manager="test")
    assert patched["data"] == {"shape": "round"}


async def test_patches_status_subresource(client: Client, namespace: str) -> None:
    spec = {"type": "LoadBalancer", "ports": [{"port": 80}]}
    await client.create(SERVICES, {"metadata": {"name": "web", "namespace": namespace}, "spec": spec}, manager="test")
    status = {"status": {"loadBalancer": {"ingress": [{"ip": "10.1.2.3", "ipMode": "VIP"}]}}}
    after = await client.patch(SERVICES, "web", namespace, status, style="merge", manager="test", subresource="status")
    assert after["status"] == status["status"]


async def test_delete_with_another_uid_is_conflict(client: Client, namespace: str) -> None:
    created = await client.create(CONFIG_MAPS, settings(namespace), manager="test")
    with pytest.raises(Conflict):
        await client.delete(CONFIG_MAPS, "settings", namespace, uid="of-another")
    await client.delete(CONFIG_MAPS, "settings", namespace, uid=created["metadata"]["uid"])


async def test_invalid_object_lists_all_causes(client: Client, namespace: str) -> None:
    pod: Object = {"metadata": {"name": "web", "namespace": namespace}, "spec": {"containers": [{"name": "A b"}]}}
    with pytest.raises(Invalid) as caught:
        await client.create(PODS, pod, manager="test")
    assert [cause.field for cause in caught.value.causes] == ["spec.containers[0].name", "spec.containers[0].image"]
    head, *lines = caught.value.text().splitlines()
    assert head == f'pods {namespace}/web: Pod "web" is invalid  [ClusterRefused]'
    assert lines[1] == "  spec.containers[0].image: Required value"


async def test_unknown_field_is_invalid(client: Client, namespace: str) -> None:
    pod: Object = {"metadata": {"name": "web", "namespace": namespace}, "spec": {"containres": []}}
    for write in (client.create(PODS, pod, manager="test"), client.apply(pod, PODS, manager="test")):
        with pytest.raises(Invalid, match="containres"):
            await write


async def test_lists_1200_objects_by_pages(plane: ControlPlane, client: Client, namespace: str) -> None:
    names = [f"many-{number:04}" for number in range(1200)]
    for begin in range(0, len(names), 100):
        batch = names[begin : begin + 100]
        await asyncio.gather(*(client.create(CONFIG_MAPS, settings(namespace, name), manager="test") for name in batch))
    async with Client(plane.access(), agent="test", limits=ClientLimits(page_size=90)) as paging:
        listing = await paging.list(CONFIG_MAPS, namespace)
    assert [item["metadata"]["name"] for item in listing.items] == names
    assert int(listing.resource_version) >= max(int(item["metadata"]["resourceVersion"]) for item in listing.items)


async def test_list_with_selectors_and_type(client: Client, namespace: str) -> None:
    class Named(msgspec.Struct):
        metadata: dict[str, object]

    for name in ("red", "blue"):
        item = settings(namespace, name)
        item["metadata"]["labels"] = {"color": name}
        await client.create(CONFIG_MAPS, item, manager="test")
    by_label = await client.list(CONFIG_MAPS, namespace, labels="color=red", type=Named)
    assert [item.metadata["name"] for item in by_label.items] == ["red"]
    by_field = await client.list(CONFIG_MAPS, namespace, fields="metadata.name=blue")
    assert [item["metadata"]["name"] for item in by_field.items] == ["blue"]


async def test_watch_yields_changes_after_resource_version(client: Client, namespace: str) -> None:
    resource_version = (await client.list(CONFIG_MAPS, namespace)).resource_version
    await client.create(CONFIG_MAPS, settings(namespace, color="red"), manager="test")
    await client.apply(settings(namespace, color="blue"), CONFIG_MAPS, manager="test")
    await client.delete(CONFIG_MAPS, "settings", namespace)
    seen = []
    async with (
        aclosing(client.watch(CONFIG_MAPS, namespace, resource_version=resource_version)) as events,
        asyncio.timeout(60),
    ):
        async for event in events:
            seen.append((event.type, event.object["data"]["color"]))
            if event.type == "DELETED":
                break
    assert seen == [("ADDED", "red"), ("MODIFIED", "blue"), ("DELETED", "blue")]


async def test_watch_bookmarks_advance_resource_version(plane: ControlPlane, client: Client, namespace: str) -> None:
    async def write_elsewhere() -> None:
        while True:
            now = str(asyncio.get_running_loop().time())
            await client.apply(settings("default", now=now), CONFIG_MAPS, manager="test")
            await asyncio.sleep(0.1)

    resource_version = (await client.list(CONFIG_MAPS, namespace)).resource_version
    writing = asyncio.create_task(write_elsewhere())
    # The server sends the last bookmark shortly before it ends a watch.
    async with (
        Client(plane.access(), agent="test", limits=ClientLimits(watch_timeout_s=3)) as brief,
        asyncio.timeout(60),
    ):
        lines = [
            parse_event(line) async for line in brief.watch_lines(select(CONFIG_MAPS, namespace), resource_version)
        ]
        assert {line.type for line in lines} == {"BOOKMARK"}
        assert int(parse_identity(lines[-1].object).metadata.resource_version) > int(resource_version)
        assert [event async for event in brief.watch(CONFIG_MAPS, namespace, resource_version=resource_version)] == []
    writing.cancel()
    await asyncio.wait({writing})


async def test_watch_from_expired_resource_version_is_gone(client: Client) -> None:
    widgets = await define_widgets(client, "gone")
    # The kind was created after this resourceVersion.
    with pytest.raises(Gone):
        async for _ in client.watch(widgets, resource_version="1"):
            pass


async def test_logs_of_missing_pod_are_not_found(client: Client, namespace: str) -> None:
    with pytest.raises(NotFound) as caught:
        async for _ in client.logs(namespace, "web-0"):
            pass
    assert str(caught.value.problem().where) == f"pods {namespace}/web-0"


async def test_raw_requests(client: Client) -> None:
    assert await client.raw("GET", "/readyz") == b"ok"
    assert b"[+]ping ok" in await client.raw("GET", "/readyz", query={"verbose": ""})


async def test_forbidden_names_user_and_resource(plane: ControlPlane) -> None:
    async with Client(plane.access("nobody", groups=()), agent="test") as unauthorized:
        with pytest.raises(Forbidden, match='User "nobody" cannot list resource "pods"'):
            await unauthorized.list(PODS, "default")


async def test_refused_connection_is_unreachable(plane: ControlPlane) -> None:
    nowhere = replace(plane.access(), server="https://127.0.0.1:1")
    async with Client(nowhere, agent="test") as client:
        with pytest.raises(Unreachable) as caught:
            await client.list(NAMESPACES)
    assert caught.value.text().splitlines() == [
        "namespaces: https://127.0.0.1:1 did not answer: connection refused  [ClusterUnreachable]",
        "  next: pin status",
    ]


async def test_untrusted_certificate_is_unreachable(plane: ControlPlane) -> None:
    for access in (replace(plane.access(), authority=b""), replace(plane.access(), server_name="another.name")):
        async with Client(access, agent="test") as client:
            with pytest.raises(Unreachable, match="its certificate is not trusted"):
                await client.list(NAMESPACES)


async def test_rejects_invalid_client_key(plane: ControlPlane) -> None:
    with pytest.raises(Refused, match="the certificates cannot be used"):
        async with Client(replace(plane.access(), key=b"nonsense"), agent="test"):
            pass

"""Informer against a real API server, also over connections that are cut and restored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from control_plane import ControlPlane
from pincompute.kube.client import Client
from pincompute.kube.informer import Informer
from pincompute.kube.resource import CONFIG_MAPS, ROLE_BINDINGS, ROLES, Resource
from pincompute.kube.transport import ClientLimits
from pincompute.kube.watch import Event
from tcp_forwarder import TcpForwarder
from widgets import define_widgets

pytestmark = pytest.mark.cluster

TIMEOUT_S = 60.0


class Settings(msgspec.Struct):
    """The data of a ConfigMap, without its other fields."""

    data: dict[str, str] = {}


class RecordingInformer(Informer[Settings]):
    """Informer that records its events and counts its lists and watches."""

    def __init__(self, client: Client, namespace: str, resource: Resource = CONFIG_MAPS, **more: Any) -> None:
        self.events: list[tuple[str, str]] = []
        self.attempts = 0
        super().__init__(client, resource, type=Settings, namespace=namespace, on_change=self._record, **more)

    def _record(self, event: Event[Settings]) -> None:
        self.events.append((event.type, event.object.data.get("color", "")))

    async def _list_and_watch(self) -> None:
        self.attempts += 1
        self._changed.set()
        await super()._list_and_watch()

    async def until(self, **colors: str) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            await self.wait_for(lambda items: {key[1]: item.data.get("color") for key, item in items.items()} == colors)

    async def until_next_watch(self) -> None:
        attempts = self.attempts
        async with asyncio.timeout(TIMEOUT_S):
            await self.wait_for(lambda _: self.attempts > attempts)


@asynccontextmanager
async def running(informer: Informer[Any]) -> AsyncGenerator[None]:
    task = asyncio.create_task(informer.run())
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await informer.synced.wait()
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        # An informer ends only by being cancelled.
        assert task.cancelled()


async def set_color(client: Client, namespace: str, name: str, color: str, resource: Resource = CONFIG_MAPS) -> None:
    item = {"metadata": {"name": name, "namespace": namespace}, "data": {"color": color}}
    await client.apply(item, resource, manager="test")


async def test_reports_existing_objects_and_changes(client: Client, namespace: str) -> None:
    await set_color(client, namespace, "old", "red")
    informer = RecordingInformer(client, namespace)
    async with running(informer):
        assert informer.items == {(namespace, "old"): Settings({"color": "red"})}
        await set_color(client, namespace, "new", "green")
        await set_color(client, namespace, "old", "blue")
        await client.delete(CONFIG_MAPS, "new", namespace)
        await informer.until(old="blue")
    assert informer.events == [("ADDED", "red"), ("ADDED", "green"), ("MODIFIED", "blue"), ("DELETED", "green")]
    assert informer.staleness_s() < TIMEOUT_S
    assert client.supports_watch_list


async def test_ignores_changes_of_undeclared_fields(client: Client, namespace: str) -> None:
    await set_color(client, namespace, "settings", "red")
    informer = RecordingInformer(client, namespace)
    async with running(informer):
        labels = {"metadata": {"labels": {"team": "web"}}}
        await client.patch(CONFIG_MAPS, "settings", namespace, labels, style="merge", manager="test")
        await set_color(client, namespace, "settings", "blue")
        await informer.until(settings="blue")
    assert informer.events == [("ADDED", "red"), ("MODIFIED", "blue")]


async def test_resumes_watch_after_lost_connection(
    plane: ControlPlane, client: Client, namespace: str, forwarder: TcpForwarder
) -> None:
    await set_color(client, namespace, "stays", "red")
    await set_color(client, namespace, "goes", "green")
    async with Client(plane.access(port=forwarder.port), agent="test") as forwarded:
        informer = RecordingInformer(forwarded, namespace)
        async with running(informer):
            await forwarder.cut()
            await client.delete(CONFIG_MAPS, "goes", namespace)
            await set_color(client, namespace, "comes", "blue")
            forwarder.restore()
            await informer.until(stays="red", comes="blue")
    assert informer.events[2:] == [("DELETED", "green"), ("ADDED", "blue")]


async def test_reports_deletion_after_expired_resource_version(
    plane: ControlPlane, client: Client, namespace: str, forwarder: TcpForwarder
) -> None:
    widgets = await define_widgets(client, "vanished")
    await set_color(client, namespace, "stays", "red", widgets)
    await set_color(client, namespace, "goes", "green", widgets)
    async with Client(plane.access(port=forwarder.port), agent="test") as forwarded:
        informer = RecordingInformer(forwarded, namespace, widgets)
        async with running(informer):
            await forwarder.cut()
            await client.delete(widgets, "goes", namespace)
            await set_color(client, namespace, "stays", "blue", widgets)
            # The server compacts nothing during a test, but a resourceVersion older than the kind is expired as well.
            informer._resource_version = "1"  # noqa: SLF001
            forwarder.restore()
            await informer.until(stays="blue")
    assert informer.events[2:] == [("MODIFIED", "blue"), ("DELETED", "green")]


async def test_watches_again_after_server_ends_watch(plane: ControlPlane, namespace: str) -> None:
    async with Client(plane.access(), agent="test", limits=ClientLimits(watch_timeout_s=1)) as client:
        informer = RecordingInformer(client, namespace)
        async with running(informer):
            for color in ("red", "green", "blue"):
                await informer.until_next_watch()
                await set_color(client, namespace, "settings", color)
                await informer.until(settings=color)
    assert informer.events == [("ADDED", "red"), ("MODIFIED", "green"), ("MODIFIED", "blue")]


async def test_undecodable_object_hides_no_other(client: Client, namespace: str) -> None:
    widgets = await define_widgets(client, "spoiled")
    for name, data in (("bad", "no object"), ("good", {"color": "red"})):
        await client.create(widgets, {"metadata": {"name": name, "namespace": namespace}, "data": data}, manager="test")
    informer = RecordingInformer(client, namespace, widgets)
    async with running(informer):
        assert list(informer.items) == [(namespace, "good")]
        for name, data in (("bad", {"color": "blue"}), ("good", 7)):
            await client.patch(widgets, name, namespace, {"data": data}, style="merge", manager="test")
        # The last valid version of an object stays when it becomes invalid.
        await informer.until(bad="blue", good="red")


async def test_retries_until_access_is_granted(plane: ControlPlane, client: Client, namespace: str) -> None:
    async with Client(plane.access("late", groups=()), agent="test") as late:
        informer = RecordingInformer(late, namespace)
        task = asyncio.create_task(informer.run())
        async with asyncio.timeout(TIMEOUT_S):
            await informer.responded.wait()
        assert informer.problem is not None
        assert not informer.synced.is_set()
        rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]
        metadata = {"name": "look", "namespace": namespace}
        await client.create(ROLES, {"metadata": metadata, "rules": rules}, manager="test")
        binding = {
            "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "look"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "late"}],
        }
        await client.create(ROLE_BINDINGS, binding, manager="test")
        async with asyncio.timeout(TIMEOUT_S):
            await informer.synced.wait()
        task.cancel()
        await asyncio.wait([task])

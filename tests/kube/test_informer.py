"""An informer against a real API server, over a road that is cut and mended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from control_plane import ControlPlane
from forwarder import Forwarder
from pincompute.kube.client import Client
from pincompute.kube.informer import Informer
from pincompute.kube.resource import CONFIG_MAPS, ROLE_BINDINGS, ROLES, Resource
from pincompute.kube.transport import Limits
from pincompute.kube.watch import Event
from widgets import serve_widgets

pytestmark = pytest.mark.cluster

PATIENCE = 60.0


class Settings(msgspec.Struct):
    """Of a ConfigMap, only the data."""

    data: dict[str, str] = {}


class Watched(Informer[Settings]):
    """An informer that remembers what it told."""

    def __init__(self, client: Client, namespace: str, resource: Resource = CONFIG_MAPS, **more: Any) -> None:
        self.told: list[tuple[str, str]] = []
        super().__init__(client, resource, type=Settings, namespace=namespace, on_change=self._hear, **more)

    def _hear(self, event: Event[Settings]) -> None:
        self.told.append((event.type, event.object.data.get("color", "")))

    async def until(self, **colors: str) -> None:
        async with asyncio.timeout(PATIENCE):
            await self.wait_for(lambda items: {key[1]: item.data.get("color") for key, item in items.items()} == colors)


@asynccontextmanager
async def running(informer: Informer[Any]) -> AsyncGenerator[None]:
    task = asyncio.create_task(informer.run())
    try:
        async with asyncio.timeout(PATIENCE):
            await informer.synced.wait()
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        # It ends by being cancelled, and never otherwise.
        assert task.cancelled()


async def paint(client: Client, namespace: str, name: str, color: str, resource: Resource = CONFIG_MAPS) -> None:
    item = {"metadata": {"name": name, "namespace": namespace}, "data": {"color": color}}
    await client.apply(item, resource, manager="test")


async def test_it_shows_what_is_there_and_what_becomes_of_it(client: Client, namespace: str) -> None:
    await paint(client, namespace, "old", "red")
    informer = Watched(client, namespace)
    async with running(informer):
        assert informer.items == {(namespace, "old"): Settings({"color": "red"})}
        await paint(client, namespace, "new", "green")
        await paint(client, namespace, "old", "blue")
        await client.delete(CONFIG_MAPS, "new", namespace)
        await informer.until(old="blue")
    assert informer.told == [("ADDED", "red"), ("ADDED", "green"), ("MODIFIED", "blue"), ("DELETED", "green")]
    assert informer.age() < PATIENCE
    assert client.streams


async def test_a_change_of_what_is_not_declared_is_no_change(client: Client, namespace: str) -> None:
    await paint(client, namespace, "settings", "red")
    informer = Watched(client, namespace)
    async with running(informer):
        labels = {"metadata": {"labels": {"team": "web"}}}
        await client.patch(CONFIG_MAPS, "settings", namespace, labels, style="merge", manager="test")
        await paint(client, namespace, "settings", "blue")
        await informer.until(settings="blue")
    assert informer.told == [("ADDED", "red"), ("MODIFIED", "blue")]


async def test_after_a_cut_it_goes_on_where_it_was(
    plane: ControlPlane, client: Client, namespace: str, forwarder: Forwarder
) -> None:
    await paint(client, namespace, "stays", "red")
    await paint(client, namespace, "goes", "green")
    async with Client(plane.access(port=forwarder.port), agent="test") as far:
        informer = Watched(far, namespace)
        async with running(informer):
            await forwarder.cut()
            await client.delete(CONFIG_MAPS, "goes", namespace)
            await paint(client, namespace, "comes", "blue")
            forwarder.mend()
            await informer.until(stays="red", comes="blue")
    assert informer.told[2:] == [("DELETED", "green"), ("ADDED", "blue")]


async def test_what_vanished_while_its_revision_became_too_old_is_told_as_deleted(
    plane: ControlPlane, client: Client, namespace: str, forwarder: Forwarder
) -> None:
    widgets = await serve_widgets(client, "vanished")
    await paint(client, namespace, "stays", "red", widgets)
    await paint(client, namespace, "goes", "green", widgets)
    async with Client(plane.access(port=forwarder.port), agent="test") as far:
        informer = Watched(far, namespace, widgets)
        async with running(informer):
            await forwarder.cut()
            await client.delete(widgets, "goes", namespace)
            await paint(client, namespace, "stays", "blue", widgets)
            # No server of a test lives long enough to forget, but it never knew what is older than the kind.
            informer._revision = "1"  # noqa: SLF001
            forwarder.mend()
            await informer.until(stays="blue")
    assert informer.told[2:] == [("MODIFIED", "blue"), ("DELETED", "green")]


async def test_it_watches_anew_when_the_server_ends_a_watch(plane: ControlPlane, namespace: str) -> None:
    async with Client(plane.access(), agent="test", limits=Limits(watch=1)) as client:
        informer = Watched(client, namespace)
        async with running(informer):
            for color in ("red", "green", "blue"):
                await asyncio.sleep(1)
                await paint(client, namespace, "settings", color)
                await informer.until(settings=color)
    assert informer.told == [("ADDED", "red"), ("MODIFIED", "green"), ("MODIFIED", "blue")]


async def test_one_spoiled_object_hides_no_other(client: Client, namespace: str) -> None:
    widgets = await serve_widgets(client, "spoiled")
    for name, data in (("bad", "no object"), ("good", {"color": "red"})):
        await client.create(widgets, {"metadata": {"name": name, "namespace": namespace}, "data": data}, manager="test")
    informer = Watched(client, namespace, widgets)
    async with running(informer):
        assert list(informer.items) == [(namespace, "good")]
        for name, data in (("bad", {"color": "blue"}), ("good", 7)):
            await client.patch(widgets, name, namespace, {"data": data}, style="merge", manager="test")
        # The last good view of an object stays when it is spoiled.
        await informer.until(bad="blue", good="red")


async def test_who_may_not_look_keeps_trying(plane: ControlPlane, client: Client, namespace: str) -> None:
    async with Client(plane.access("late", groups=()), agent="test") as late:
        informer = Watched(late, namespace)
        task = asyncio.create_task(informer.run())
        await asyncio.sleep(0.3)
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
        async with asyncio.timeout(PATIENCE):
            await informer.synced.wait()
        task.cancel()
        await asyncio.wait([task])

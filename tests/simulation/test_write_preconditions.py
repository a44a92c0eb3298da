"""Writes that were decided on an older object are rejected as conflicts."""

from __future__ import annotations

import msgspec
import pytest
from simulation.api_server import SimulatedApiServer
from simulation.clock import run_in_virtual_time
from simulation.object_store import ObjectStore
from simulation.transport import SimulatedProcess, SimulatedTransport

from pincompute.api.service import PinterestService
from pincompute.controller.apply import apply_step
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.controller.status_writer import write_status
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.errors import Conflict
from pincompute.kube.resource import NAMESPACES
from pincompute.objects.content import Object
from pincompute.planning.steps import Apply


def simulated_client(store: ObjectStore) -> Client:
    transport = SimulatedTransport(SimulatedApiServer(store), SimulatedProcess())
    return Client(Access(server="https://model"), "tests", transport=transport)


def test_status_of_older_revision_is_rejected() -> None:
    async def write() -> None:
        store = ObjectStore()
        store.create(NAMESPACES, {"metadata": {"name": "me"}})
        client = simulated_client(store)
        resource = CUSTOM_RESOURCES["PinterestService"]
        body = {"metadata": {"name": "web", "namespace": "me"}, "spec": {"image": "web:1", "port": 8080}}
        owner = msgspec.convert(await client.create(resource, body, manager="tests"), PinterestService)
        await write_status(client, owner.kind, owner.metadata, {"revision": 1})
        with pytest.raises(Conflict):
            await write_status(client, owner.kind, owner.metadata, {"revision": 2})
        assert (await client.get(resource, "web", "me"))["status"]["revision"] == 1

    run_in_virtual_time(write())


def test_apply_to_deleted_object_is_a_conflict() -> None:
    native: Object = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "me"}, "spec": {}}

    async def write() -> None:
        client = simulated_client(ObjectStore())
        await apply_step(client, "me", Apply(native, "00000000-0000-4000-8000-000000000000"))

    with pytest.raises(Conflict, match="deleted in between"):
        run_in_virtual_time(write())

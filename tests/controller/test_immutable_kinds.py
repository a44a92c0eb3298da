"""Parts and runtimes are immutable on a real API server, with our messages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from generate_fleet import document, runtimes

from control_plane import ControlPlane
from pincompute.base.problem import Refused
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.client import Client
from pincompute.kube.resource import Resource
from workloads import cluster_client

pytestmark = pytest.mark.cluster

PARTS, RUNTIMES = CUSTOM_RESOURCES["PinterestSidecar"], CUSTOM_RESOURCES["Runtime"]
ROLL = {"waves": [50, 100], "tiers": ["reserved"]}


@pytest.fixture(autouse=True)
async def deleted_afterwards(plane: ControlPlane) -> AsyncIterator[None]:
    """The control plane is shared, and other tests create parts and runtimes of the same names."""
    yield
    async with cluster_client(plane) as client:
        for resource in (RUNTIMES, PARTS):
            for item in (await client.list(resource)).items:
                await client.delete(resource, item["metadata"]["name"])


async def refusal_text(client: Client, document: dict[str, Any], resource: Resource) -> str:
    with pytest.raises(Refused) as refused:
        await client.apply(document, resource, manager="tests")
    return refused.value.text()


async def test_rejects_changes_of_parts_and_runtimes(plane: ControlPlane) -> None:
    async with cluster_client(plane) as client:
        for resource in runtimes():
            await client.apply(resource, PARTS if resource["kind"] == "PinterestSidecar" else RUNTIMES, manager="tests")
        part = document("PinterestSidecar", {"name": "logs-2"}, {"image": "logs:2.1"})
        assert "create its next version, such as logs-3 after logs-2" in await refusal_text(client, part, PARTS)
        spec: dict[str, Any] = {"parts": ["identity-1", "logs-2"], "roll": ROLL}
        await client.apply(document("Runtime", {"name": "42"}, spec), RUNTIMES, manager="tests")
        paused = {**spec, "roll": {**ROLL, "paused": "ann: errors"}}
        await client.apply(document("Runtime", {"name": "42"}, paused), RUNTIMES, manager="tests")
        changes: tuple[tuple[dict[str, Any], str], ...] = (
            ({"parts": ["identity-1"]}, "create the one with the next number"),
            ({"roll": None}, "spec.roll.stopped"),
            ({"roll": {**ROLL, "tiers": ["preemptible"]}}, "the order of zones and tiers is immutable"),
        )
        for change, message in changes:
            wanted = {field: value for field, value in {**spec, **change}.items() if value is not None}
            assert message in await refusal_text(client, document("Runtime", {"name": "42"}, wanted), RUNTIMES)


@pytest.mark.parametrize(("name", "message"), [("logs", "ends with its version"), ("logs-0", "ends with its version")])
async def test_rejects_part_name_without_version(plane: ControlPlane, name: str, message: str) -> None:
    async with cluster_client(plane) as client:
        assert message in await refusal_text(
            client, document("PinterestSidecar", {"name": name}, {"image": "logs:1"}), PARTS
        )

"""Parts and runtimes on a real API server: what never changes is refused with our words."""

from __future__ import annotations

from typing import Any

import pytest
from fleet import noun, runtimes

from control_plane import ControlPlane
from pincompute.base.problem import Refused
from pincompute.controller.resources import NOUNS
from pincompute.kube.client import Client
from pincompute.kube.resource import Resource
from workloads import cluster

pytestmark = pytest.mark.cluster

PARTS, RUNTIMES = NOUNS["PinterestSidecar"], NOUNS["Runtime"]
ROLL = {"waves": [50, 100], "tiers": ["reserved"]}


async def refusal(client: Client, document: dict[str, Any], resource: Resource) -> str:
    with pytest.raises(Refused) as refused:
        await client.apply(document, resource, manager="tests")
    return refused.value.text()


async def test_what_never_changes(plane: ControlPlane) -> None:
    async with cluster(plane) as client:
        for each in runtimes():
            await client.apply(each, PARTS if each["kind"] == "PinterestSidecar" else RUNTIMES, manager="tests")
        part = noun("PinterestSidecar", {"name": "logs-2"}, {"image": "logs:2.1"})
        assert "make its next version, such as logs-3 after logs-2" in await refusal(client, part, PARTS)
        spec: dict[str, Any] = {"parts": ["identity-1", "logs-2"], "roll": ROLL}
        await client.apply(noun("Runtime", {"name": "42"}, spec), RUNTIMES, manager="tests")
        paused = {**spec, "roll": {**ROLL, "paused": "ann: errors"}}
        await client.apply(noun("Runtime", {"name": "42"}, paused), RUNTIMES, manager="tests")
        changes: tuple[tuple[dict[str, Any], str], ...] = (
            ({"parts": ["identity-1"]}, "make the one with the next number"),
            ({"roll": None}, "spec.roll.stopped"),
            ({"roll": {**ROLL, "tiers": ["preemptible"]}}, "the order of zones and tiers cannot change"),
        )
        for change, words in changes:
            wanted = {field: value for field, value in {**spec, **change}.items() if value is not None}
            assert words in await refusal(client, noun("Runtime", {"name": "42"}, wanted), RUNTIMES)


@pytest.mark.parametrize(("name", "told"), [("logs", "ends with its version"), ("logs-0", "ends with its version")])
async def test_names(plane: ControlPlane, name: str, told: str) -> None:
    async with cluster(plane) as client:
        assert told in await refusal(client, noun("PinterestSidecar", {"name": name}, {"image": "logs:1"}), PARTS)

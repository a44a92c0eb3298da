"""Two operators of one cluster, against a real API server: one acts, and where it ends the other goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from control_plane import ControlPlane
from leases import holders
from pincompute.api.admission import admit
from pincompute.api.documents import read
from pincompute.api.names import CLUSTER_FACTS, ENGINE, HAND, OPERATOR, SYSTEM
from pincompute.controller.workloads import Workloads
from pincompute.kube.client import Client
from pincompute.kube.lease import Terms
from pincompute.kube.resource import CONFIG_MAPS, DEPLOYMENTS, LEASES, NAMESPACES
from pincompute.operator.door import Door
from pincompute.operator.process import operate
from workloads import HELLO, cluster, new_project

pytestmark = pytest.mark.cluster

QUICK = Terms(lasts=5, renewed=1, given_up=4)
FACTS = {"name": "test", "domain": "localhost", "port": "8080", "nodes": "real"}


class Operator:
    """One process of it, as far as this test goes."""

    def __init__(self, plane: ControlPlane, holder: str) -> None:
        self.holder = holder
        self.stop = asyncio.Event()
        self.door = Door()
        self.task = asyncio.create_task(operate(plane.access(), holder, self.stop, self.door, QUICK))

    @property
    def leads(self) -> bool:
        return self.door.loops is not None and self.door.loops.leads

    @property
    def sees(self) -> bool:
        return self.door.loops is not None and self.door.loops.view.complete

    async def until(self, *, leads: bool) -> None:
        async with asyncio.timeout(60):
            while self.leads != leads or not self.sees:  # noqa: ASYNC110  (in truth it is another process)
                await asyncio.sleep(0.02)

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.wait({self.task})


@asynccontextmanager
async def two(plane: ControlPlane) -> AsyncGenerator[tuple[Client, Operator, Operator]]:
    """The first leads, and the second stands by."""
    async with cluster(plane) as client:
        await client.apply({"metadata": {"name": SYSTEM}}, NAMESPACES, manager=ENGINE)
        facts = {"metadata": {"name": CLUSTER_FACTS, "namespace": SYSTEM}, "data": FACTS}
        await client.apply(facts, CONFIG_MAPS, manager=ENGINE)
        first = Operator(plane, "first")
        await first.until(leads=True)
        second = Operator(plane, "second")
        await second.until(leads=False)
        try:
            yield client, first, second
        finally:
            await first.end()
            await second.end()
            await client.delete(LEASES, OPERATOR, SYSTEM)


async def write(client: Client, project: str, image: str) -> None:
    workload: Any = admit(read(HELLO.replace("hello:dev", image))[0], project)
    await Workloads(client).write(workload, manager=HAND)


async def runs(client: Client, project: str, image: str) -> None:
    async with asyncio.timeout(60), aclosing(client.watch(DEPLOYMENTS, project)) as events:
        async for event in events:
            template: dict[str, Any] = event.object["spec"]["template"]
            if template["spec"]["containers"][0]["image"] == image:
                return


async def test_who_is_told_to_stop_hands_over(plane: ControlPlane) -> None:
    async with two(plane) as (client, first, second):
        project = await new_project(client)
        await write(client, project, "hello:1")
        await runs(client, project, "hello:1")
        assert second.door.loops
        assert second.door.loops.planned.passes == 0
        async with holders(client, SYSTEM, OPERATOR) as seen:
            first.stop.set()
            await second.until(leads=True)
        # It was let go, and did not run out.
        assert seen == ["first", "", "second"]
        await first.task
        await write(client, project, "hello:2")
        await runs(client, project, "hello:2")


async def test_who_dies_is_followed_by_the_one_that_stood_by(plane: ControlPlane) -> None:
    async with two(plane) as (client, first, second):
        project = await new_project(client)
        await write(client, project, "hello:1")
        await first.end()
        # Nobody let go: the lease has to run out.
        assert (await client.get(LEASES, OPERATOR, SYSTEM))["spec"]["holderIdentity"] == "first"
        await second.until(leads=True)
        await runs(client, project, "hello:1")


async def test_who_has_lost_the_lease_writes_nothing_and_stands_by(plane: ControlPlane) -> None:
    async with two(plane) as (client, first, second):
        project = await new_project(client)
        await second.end()
        taken = {"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 60}}
        await client.patch(LEASES, OPERATOR, SYSTEM, taken, style="merge", manager="somebody")
        await first.until(leads=False)
        await write(client, project, "hello:1")
        await asyncio.sleep(QUICK.renewed)
        assert (await client.list(DEPLOYMENTS, project)).items == []
        # Whoever it was is not heard again.
        await first.until(leads=True)
        await runs(client, project, "hello:1")

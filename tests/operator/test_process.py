"""Two operators of one cluster, against a real API server: one is_leader, and the other takes over when it stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from control_plane import ControlPlane
from lease_holders import watch_holders
from pincompute.api.documents import read_documents
from pincompute.api.names import CLI_MANAGER, CLUSTER_FACTS_CONFIGMAP, ENGINE, OPERATOR, SYSTEM_NAMESPACE
from pincompute.api.validation import parse_resource
from pincompute.kube.client import Client
from pincompute.kube.lease import LeaseTimings
from pincompute.kube.resource import CONFIG_MAPS, DEPLOYMENTS, LEASES, NAMESPACES
from pincompute.operator.http_server import HttpServer
from pincompute.operator.process import run_operator
from pincompute.platforms.kubernetes.workloads import WorkloadClient
from workloads import HELLO, cluster_client, new_project

pytestmark = pytest.mark.cluster

SHORT_LEASE = LeaseTimings(duration_s=5, renew_interval_s=1, renew_deadline_s=4)
FACTS = {"name": "test", "domain": "localhost", "port": "8080", "nodes": "real"}


class Operator:
    """One operator, run in this process."""

    def __init__(self, plane: ControlPlane, holder: str) -> None:
        self.holder = holder
        self.stop = asyncio.Event()
        self.server = HttpServer()
        self.task = asyncio.create_task(run_operator(plane.access(), holder, self.stop, self.server, SHORT_LEASE))

    @property
    def is_leader(self) -> bool:
        return self.server.manager is not None and self.server.manager.is_leader

    @property
    def is_synced(self) -> bool:
        return self.server.manager is not None and self.server.manager.cache.complete

    async def wait_until(self, *, is_leader: bool) -> None:
        async with asyncio.timeout(60):
            while self.is_leader != is_leader or not self.is_synced:  # noqa: ASYNC110  (leadership has no event)
                await asyncio.sleep(0.02)

    async def kill(self) -> None:
        self.task.cancel()
        await asyncio.wait({self.task})


@asynccontextmanager
async def two_operators(plane: ControlPlane) -> AsyncGenerator[tuple[Client, Operator, Operator]]:
    """The first is leader, the second stands by."""
    async with cluster_client(plane) as client:
        await client.apply({"metadata": {"name": SYSTEM_NAMESPACE}}, NAMESPACES, manager=ENGINE)
        facts = {"metadata": {"name": CLUSTER_FACTS_CONFIGMAP, "namespace": SYSTEM_NAMESPACE}, "data": FACTS}
        await client.apply(facts, CONFIG_MAPS, manager=ENGINE)
        first = Operator(plane, "first")
        await first.wait_until(is_leader=True)
        second = Operator(plane, "second")
        await second.wait_until(is_leader=False)
        try:
            yield client, first, second
        finally:
            await first.kill()
            await second.kill()
            await client.delete(LEASES, OPERATOR, SYSTEM_NAMESPACE)


async def write_service(client: Client, project: str, image: str) -> None:
    workload: Any = parse_resource(read_documents(HELLO.replace("hello:dev", image))[0], project)
    await WorkloadClient(client).write(workload, manager=CLI_MANAGER)


async def wait_deployed(client: Client, project: str, image: str) -> None:
    async with asyncio.timeout(60), aclosing(client.watch(DEPLOYMENTS, project)) as events:
        async for event in events:
            template: dict[str, Any] = event.object["spec"]["template"]
            if template["spec"]["containers"][0]["image"] == image:
                return


async def test_stopped_operator_releases_the_lease(plane: ControlPlane) -> None:
    async with two_operators(plane) as (client, first, second):
        project = await new_project(client)
        await write_service(client, project, "hello:1")
        await wait_deployed(client, project, "hello:1")
        assert second.server.manager
        assert second.server.manager.loop.pass_count == 0
        async with watch_holders(client, SYSTEM_NAMESPACE, OPERATOR) as holders:
            first.stop.set()
            await second.wait_until(is_leader=True)
        # The lease was released; it did not expire.
        assert holders == ["first", "", "second"]
        await first.task
        await write_service(client, project, "hello:2")
        await wait_deployed(client, project, "hello:2")


async def test_standby_takes_over_when_the_leader_dies(plane: ControlPlane) -> None:
    async with two_operators(plane) as (client, first, second):
        project = await new_project(client)
        await write_service(client, project, "hello:1")
        await first.kill()
        # The lease was not released, so it has to expire.
        assert (await client.get(LEASES, OPERATOR, SYSTEM_NAMESPACE))["spec"]["holderIdentity"] == "first"
        await second.wait_until(is_leader=True)
        await wait_deployed(client, project, "hello:1")


async def test_operator_that_lost_the_lease_does_not_write(plane: ControlPlane) -> None:
    async with two_operators(plane) as (client, first, second):
        project = await new_project(client)
        await second.kill()
        taken = {"spec": {"holderIdentity": "other", "leaseDurationSeconds": 60}}
        await client.patch(LEASES, OPERATOR, SYSTEM_NAMESPACE, taken, style="merge", manager="other")
        await first.wait_until(is_leader=False)
        await write_service(client, project, "hello:1")
        await asyncio.sleep(SHORT_LEASE.renew_interval_s)
        assert (await client.list(DEPLOYMENTS, project)).items == []
        # The other holder never renews its lease.
        await first.wait_until(is_leader=True)
        await wait_deployed(client, project, "hello:1")

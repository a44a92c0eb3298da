"""The operator against a real API server: what it makes, what it leaves alone, and what it says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from typing import Any, NamedTuple

import msgspec
import pytest

from control_plane import ControlPlane
from pincompute.api.admission import admit
from pincompute.api.documents import read
from pincompute.api.names import HAND, TEMPLATE, WORKLOAD
from pincompute.api.service import PinterestService, ServiceSpec
from pincompute.api.summary import Summary
from pincompute.controller.resources import NOUNS
from pincompute.controller.workloads import Workloads
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.kube.resource import DEPLOYMENTS, INGRESSES, PODS, SERVICES
from pincompute.kube.watch import Event
from pincompute.operator.process import Loops
from pincompute.planning.snapshot import Cluster
from workloads import HELLO, cluster, new_project

pytestmark = pytest.mark.cluster

CLUSTER = Cluster(name="test", domain="localhost", port=8080)
NATIVES = (SERVICES, DEPLOYMENTS, INGRESSES)


class Counting(Client):
    """Counts what the operator writes by apply."""

    applies = 0

    async def apply(self, *arguments: Any, **words: Any) -> dict[str, Any]:
        self.applies += 1
        return await super().apply(*arguments, **words)


class World(NamedTuple):
    """A cluster with a running operator, and a project of this test's own."""

    client: Client
    operator: Counting
    workloads: Workloads
    loops: Loops
    project: str

    async def write(self, **spec: Any) -> Summary:
        workload = admit(read(HELLO)[0], self.project)
        spec = {**msgspec.to_builtins(workload.spec), **spec}
        changed = PinterestService(metadata=workload.metadata, spec=msgspec.convert(spec, ServiceSpec))
        return await self.workloads.write(changed, manager=HAND)

    async def natives(self) -> list[dict[str, Any]]:
        return [await self.client.get(each, "hello", self.project) for each in NATIVES]

    async def until(self, reason: str, revision: int) -> Summary:
        async with asyncio.timeout(10), aclosing(self.workloads.follow(self.project, "hello")) as summaries:
            async for summary in summaries:
                if summary.reason == reason and summary.revision >= revision and summary.address:
                    return summary
        raise AssertionError("the workload went away")

    def watch_service(self) -> AsyncGenerator[Event[Any]]:
        return self.client.watch(SERVICES, self.project, fields="metadata.name=hello")

    async def settled(self) -> None:
        """No pass is made any more."""
        quiet = -1
        while quiet != self.loops.workloads.passes:
            quiet = self.loops.workloads.passes
            await asyncio.sleep(0.3)


@asynccontextmanager
async def world(plane: ControlPlane) -> AsyncGenerator[World]:
    async with cluster(plane) as client, Counting(plane.access(), agent="operator") as operator:
        project = await new_project(client)
        loops = Loops(operator, CLUSTER)
        running = asyncio.create_task(loops.run())
        here = World(client, operator, Workloads(client), loops, project)
        try:
            yield here
        finally:
            # A request that is cut off on its way would leave its connection to say goodbye after the loop has ended.
            await here.settled()
            running.cancel()
            await asyncio.wait({running})


async def test_a_workload_becomes_its_natives_and_says_so(plane: ControlPlane) -> None:
    async with world(plane) as here:
        submitted = await here.write()
        assert submitted.label == "hello@1"
        summary = await here.until("Progressing", 1)
        assert summary.address == f"http://hello.{here.project}.localhost:8080"
        owners = {native["metadata"]["ownerReferences"][0]["name"] for native in await here.natives()}
        assert owners == {"hello"}


async def test_what_is_as_wanted_is_left_alone(plane: ControlPlane) -> None:
    async with world(plane) as here:
        await here.write()
        await here.until("Progressing", 1)
        await here.settled()
        before = [native["metadata"]["resourceVersion"] for native in await here.natives()]
        passes, applies = here.loops.workloads.passes, here.operator.applies
        here.loops.workloads.touch((here.project, "hello"))
        await here.settled()
        assert here.loops.workloads.passes == passes + 1
        assert here.operator.applies == applies
        assert [native["metadata"]["resourceVersion"] for native in await here.natives()] == before


async def test_an_edit_reaches_the_native_and_what_is_dropped_is_gone(plane: ControlPlane) -> None:
    async with world(plane) as here:
        await here.write(environment={"OLD": "1"}, command=["a"])
        await here.until("Progressing", 1)
        await here.write(image="hello:2", environment={"NEW": "1"})
        await here.until("Progressing", 2)
        await here.settled()
        _, deployment, _ = await here.natives()
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        assert container["image"] == "hello:2"
        assert "command" not in container
        names = {each["name"] for each in container["env"]}
        assert "NEW" in names
        assert "OLD" not in names


async def test_a_native_that_somebody_removes_comes_back(plane: ControlPlane) -> None:
    async with world(plane) as here:
        await here.write()
        await here.until("Progressing", 1)
        before = await here.client.get(SERVICES, "hello", here.project)
        await here.client.delete(SERVICES, "hello", here.project)
        async with asyncio.timeout(10), aclosing(here.watch_service()) as events:
            async for event in events:
                if event.object["metadata"]["uid"] != before["metadata"]["uid"]:
                    break


async def test_what_belongs_to_somebody_else_is_told_and_not_touched(plane: ControlPlane) -> None:
    async with world(plane) as here:
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "hello", "namespace": here.project},
            "spec": {"ports": [{"port": 1}]},
        }
        before = await here.client.create(SERVICES, service, manager="somebody")
        await here.write()
        summary = await here.until("NotOurs", 1)
        assert "Service/hello exists already and belongs to someone else" in summary.message
        assert await here.client.get(SERVICES, "hello", here.project) == before
        # The others are made all the same.
        await here.client.get(DEPLOYMENTS, "hello", here.project)


async def test_a_native_robbed_of_its_label_gets_it_back(plane: ControlPlane) -> None:
    async with world(plane) as here:
        await here.write()
        await here.until("Progressing", 1)
        await here.settled()
        body = {"metadata": {"labels": {WORKLOAD: None}}}
        await here.client.patch(SERVICES, "hello", here.project, body, style="merge", manager="somebody")
        async with asyncio.timeout(10), aclosing(here.watch_service()) as events:
            async for event in events:
                if WORKLOAD in event.object["metadata"]["labels"]:
                    break


async def test_the_pods_decide_whether_it_is_available(plane: ControlPlane) -> None:
    async with world(plane) as here:
        await here.write()
        await here.until("Progressing", 1)
        _, deployment, _ = await here.natives()
        template = deployment["spec"]["template"]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "hello-1", "namespace": here.project, "labels": template["metadata"]["labels"]},
            "spec": {"containers": [{"name": "hello", "image": "hello:dev"}]},
        }
        assert TEMPLATE in pod["metadata"]["labels"]
        await here.client.create(PODS, pod, manager="test")
        conditions = [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}]
        status = {"status": {"phase": "Running", "conditions": conditions}}
        await here.client.patch(
            PODS, "hello-1", here.project, status, style="merge", manager="test", subresource="status"
        )
        available = await here.until("Available", 1)
        assert available.done
        await here.client.delete(PODS, "hello-1", here.project)
        assert not (await here.until("Progressing", 1)).done


async def test_deleting_forgets_it(plane: ControlPlane) -> None:
    async with world(plane) as here:
        await here.write()
        await here.until("Progressing", 1)
        await here.workloads.delete(here.project, "hello")
        await here.settled()
        with pytest.raises(NotFound):
            await here.client.get(NOUNS["PinterestService"], "hello", here.project)

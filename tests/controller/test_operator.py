"""The operator against a real API server: what it makes, what it leaves alone, and what it says."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from control_plane import ControlPlane
from operated import world
from pincompute.api.names import TEMPLATE, WORKLOAD
from pincompute.controller.passes import Key
from pincompute.controller.resources import NOUNS
from pincompute.kube.errors import NotFound
from pincompute.kube.resource import DEPLOYMENTS, PODS, SERVICES

pytestmark = pytest.mark.cluster


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
        passes, applies = here.loops.planned.passes, here.operator.applies
        here.loops.planned.touch(Key(here.project, "hello"))
        await here.settled()
        assert here.loops.planned.passes == passes + 1
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
        async with asyncio.timeout(60), aclosing(here.watch_service()) as events:
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
        async with asyncio.timeout(60), aclosing(here.watch_service()) as events:
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

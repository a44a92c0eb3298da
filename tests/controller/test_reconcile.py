"""The operator against a real API server: creates natives, leaves foreign objects alone, reports status."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from control_plane import ControlPlane
from pincompute.api.names import TEMPLATE_HASH_LABEL, WORKLOAD_LABEL
from pincompute.controller.passes import Key
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.errors import NotFound
from pincompute.kube.resource import DEPLOYMENTS, PODS, SERVICES
from running_operator import operated_cluster

pytestmark = pytest.mark.cluster


async def test_creates_natives_and_reports_progress(plane: ControlPlane) -> None:
    async with operated_cluster(plane) as operated:
        submitted = await operated.write()
        assert submitted.label == "hello@1"
        summary = await operated.wait_for_reason("Progressing", 1)
        assert summary.address == f"http://hello.{operated.project}.localhost:8080"
        owners = {native["metadata"]["ownerReferences"][0]["name"] for native in await operated.natives()}
        assert owners == {"hello"}


async def test_pass_without_changes_writes_nothing(plane: ControlPlane) -> None:
    async with operated_cluster(plane) as operated:
        await operated.write()
        await operated.wait_for_reason("Progressing", 1)
        await operated.wait_settled()
        before = [native["metadata"]["resourceVersion"] for native in await operated.natives()]
        passes, applies = operated.manager.loop.pass_count, operated.operator.applies
        operated.manager.loop.enqueue(Key(operated.project, "hello"))
        await operated.wait_settled()
        assert operated.manager.loop.pass_count == passes + 1
        assert operated.operator.applies == applies
        assert [native["metadata"]["resourceVersion"] for native in await operated.natives()] == before


async def test_edit_updates_native_and_removes_dropped_fields(plane: ControlPlane) -> None:
    async with operated_cluster(plane) as operated:
        await operated.write(environment={"OLD": "1"}, command=["a"])
        await operated.wait_for_reason("Progressing", 1)
        await operated.write(image="hello:2", environment={"NEW": "1"})
        await operated.wait_for_reason("Progressing", 2)
        await operated.wait_settled()
        _, deployment, _ = await operated.natives()
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        assert container["image"] == "hello:2"
        assert "command" not in container
        names = {each["name"] for each in container["env"]}
        assert "NEW" in names
        assert "OLD" not in names


async def test_recreates_deleted_native(plane: ControlPlane) -> None:
    async with operated_cluster(plane) as operated:
        await operated.write()
        await operated.wait_for_reason("Progressing", 1)
        before = await operated.client.get(SERVICES, "hello", operated.project)
        await operated.client.delete(SERVICES, "hello", operated.project)
        async with asyncio.timeout(60), aclosing(operated.watch_service()) as events:
            async for event in events:
                if event.object["metadata"]["uid"] != before["metadata"]["uid"]:
                    break


async def test_reports_native_of_other_owner_and_leaves_it_alone(plane: ControlPlane) -> None:
    async with operated_cluster(plane) as operated:
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "hello", "namespace": operated.project},
            "spec": {"ports": [{"port": 1}]},
        }
        before = await operated.client.create(SERVICES, service, manager="other")
        await operated.write()
        summary = await operated.wait_for_reason("NotOwned", 1)
        assert "Service/hello exists already and has another owner" in summary.message
        assert await operated.client.get(SERVICES, "hello", operated.project) == before
        # The other natives are created all the same.
        await operated.client.get(DEPLOYMENTS, "hello", operated.project)


async def test_restores_removed_label(plane: ControlPlane) -> None:
    async with operated_cluster(plane) as operated:
        await operated.write()
        await operated.wait_for_reason("Progressing", 1)
        await operated.wait_settled()
        body = {"metadata": {"labels": {WORKLOAD_LABEL: None}}}
        await operated.client.patch(SERVICES, "hello", operated.project, body, style="merge", manager="other")
        async with asyncio.timeout(60), aclosing(operated.watch_service()) as events:
            async for event in events:
                if WORKLOAD_LABEL in event.object["metadata"]["labels"]:
                    break


async def test_pod_readiness_decides_availability(plane: ControlPlane) -> None:
    async with operated_cluster(plane) as operated:
        await operated.write()
        await operated.wait_for_reason("Progressing", 1)
        _, deployment, _ = await operated.natives()
        template = deployment["spec"]["template"]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "hello-1", "namespace": operated.project, "labels": template["metadata"]["labels"]},
            "spec": {"containers": [{"name": "hello", "image": "hello:dev"}]},
        }
        assert TEMPLATE_HASH_LABEL in pod["metadata"]["labels"]
        await operated.client.create(PODS, pod, manager="test")
        conditions = [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}]
        status = {"status": {"phase": "Running", "conditions": conditions}}
        await operated.client.patch(
            PODS, "hello-1", operated.project, status, style="merge", manager="test", subresource="status"
        )
        available = await operated.wait_for_reason("Available", 1)
        assert available.done
        await operated.client.delete(PODS, "hello-1", operated.project)
        assert not (await operated.wait_for_reason("Progressing", 1)).done


async def test_deleted_workload_is_gone(plane: ControlPlane) -> None:
    async with operated_cluster(plane) as operated:
        await operated.write()
        await operated.wait_for_reason("Progressing", 1)
        await operated.workloads.delete(operated.project, "hello")
        await operated.wait_settled()
        with pytest.raises(NotFound):
            await operated.client.get(CUSTOM_RESOURCES["PinterestService"], "hello", operated.project)

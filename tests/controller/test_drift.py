"""Drift, against a real API server: foreign edits are reverted and reported by an event."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing

import pytest

from control_plane import ControlPlane
from pincompute.api.names import PROJECT_LABEL, WORKLOAD_LABEL
from pincompute.controller.passes import Key
from pincompute.kube.resource import DEPLOYMENTS, EVENTS, SERVICES, Resource
from pincompute.kube.retrying_transport import RequestLabels
from pincompute.objects.content import Object
from pincompute.planning.notable_events import DRIFT_REVERTED
from running_operator import OperatedCluster, operated_cluster

pytestmark = pytest.mark.cluster


async def edit(operated: OperatedCluster, resource: Resource, body: Object, manager: str = "kubectl-edit") -> None:
    await operated.client.patch(resource, "hello", operated.project, body, style="merge", manager=manager)


async def wait_for_event(operated: OperatedCluster, resource: Resource, holds: Callable[[Object], object]) -> None:
    async with asyncio.timeout(60):
        while True:
            async with aclosing(operated.client.watch(resource, operated.project)) as events:
                async for event in events:
                    if holds(event.object):
                        return


async def drift_notes(operated: OperatedCluster) -> list[str]:
    events = (await operated.client.list(EVENTS, operated.project)).items
    return [each["note"] for each in events if each["reason"] == DRIFT_REVERTED]


def container(deployment: Object) -> Object:
    (only,) = deployment["spec"]["template"]["spec"]["containers"]
    return dict(only)


async def deploy_settled(operated: OperatedCluster) -> None:
    await operated.write(replicas=2)
    await operated.wait_for_reason("Progressing", 1)
    await operated.wait_settled()


async def test_reverts_changed_field_and_emits_event(plane: ControlPlane) -> None:
    async with operated_cluster(plane) as operated:
        await deploy_settled(operated)
        await edit(operated, DEPLOYMENTS, {"spec": {"replicas": 5}})
        await wait_for_event(operated, EVENTS, lambda seen: seen["reason"] == DRIFT_REVERTED)
        assert (await operated.client.get(DEPLOYMENTS, "hello", operated.project))["spec"]["replicas"] == 2
        (note,) = await drift_notes(operated)
        assert note.startswith("manual edit of Deployment/hello reverted: ")
        assert note.endswith("spec.replicas was set to 5 instead of 2 by kubectl-edit")
        # Through the scale subresource, to 0, which the server does not record in managedFields.
        await operated.client.patch(
            DEPLOYMENTS, "hello", operated.project, {"spec": {"replicas": 0}}, style="merge", manager="kubectl",
            subresource="scale",
        )  # fmt: skip
        await wait_for_event(
            operated, EVENTS, lambda seen: seen["note"].endswith("spec.replicas was set to 0 instead of 2")
        )
        assert (await operated.client.get(DEPLOYMENTS, "hello", operated.project))["spec"]["replicas"] == 2


async def test_removes_added_container_fields(plane: ControlPlane) -> None:
    async with operated_cluster(plane) as operated:
        await deploy_settled(operated)
        deployment = await operated.client.get(DEPLOYMENTS, "hello", operated.project)
        before = container(deployment)
        changed = {**before, "command": ["sh"], "env": [{"name": "PASSWORD", "value": "hunter2"}, *before["env"]]}
        path = "/spec/template/spec/containers/0"
        body = [{"op": "replace", "path": path, "value": changed}]
        await operated.client.patch(DEPLOYMENTS, "hello", operated.project, body, style="json", manager="kubectl-edit")
        await wait_for_event(operated, EVENTS, lambda seen: seen["reason"] == DRIFT_REVERTED)
        assert container(await operated.client.get(DEPLOYMENTS, "hello", operated.project)) == before
        (note,) = await drift_notes(operated)
        assert "spec.template.spec.containers.hello.env.PASSWORD was added by kubectl-edit" in note
        assert "hunter2" not in note


async def test_restores_removed_label_of_native(plane: ControlPlane) -> None:
    async with operated_cluster(plane) as operated:
        await deploy_settled(operated)
        await edit(operated, DEPLOYMENTS, {"metadata": {"labels": {PROJECT_LABEL: None}}})
        await wait_for_event(operated, EVENTS, lambda seen: seen["reason"] == DRIFT_REVERTED)
        labels = (await operated.client.get(DEPLOYMENTS, "hello", operated.project))["metadata"]["labels"]
        assert labels[PROJECT_LABEL] == operated.project
        assert f"metadata.labels.{PROJECT_LABEL} was removed" in (await drift_notes(operated))[0]


async def test_restores_changed_workload_label(plane: ControlPlane) -> None:
    async with operated_cluster(plane) as operated:
        await deploy_settled(operated)
        await edit(operated, SERVICES, {"metadata": {"labels": {WORKLOAD_LABEL: "another"}}})
        await wait_for_event(operated, SERVICES, lambda seen: seen["metadata"]["labels"].get(WORKLOAD_LABEL) == "hello")


async def test_foreign_field_is_inspected_once_and_kept(plane: ControlPlane) -> None:
    async with operated_cluster(plane) as operated:
        await deploy_settled(operated)
        requests = operated.operator.request_stats.requests
        gets = requests[RequestLabels("get", "deployments", 200)]
        await edit(operated, DEPLOYMENTS, {"metadata": {"annotations": {"example.com/note": "mine"}}}, "other")
        await wait_for_event(operated, DEPLOYMENTS, lambda seen: "example.com/note" in seen["metadata"]["annotations"])
        await operated.wait_settled()
        assert requests[RequestLabels("get", "deployments", 200)] == gets + 1
        before = dict(requests)
        operated.manager.loop.enqueue(Key(operated.project, "hello"))
        await operated.wait_settled()
        assert {each: count for each, count in requests.items() if each.verb != "watch"} == {
            each: count for each, count in before.items() if each.verb != "watch"
        }
        deployment = await operated.client.get(DEPLOYMENTS, "hello", operated.project)
        assert deployment["metadata"]["annotations"]["example.com/note"] == "mine"
        assert await drift_notes(operated) == []

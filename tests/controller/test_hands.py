"""Hands that reach into what is ours, against a real API server: put back, and told whose it was."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing

import pytest

from control_plane import ControlPlane
from operated import World, world
from pincompute.api.names import OPERATOR, PROJECT, WORKLOAD
from pincompute.controller.passes import Key
from pincompute.kube.resource import DEPLOYMENTS, EVENTS, SERVICES, Resource
from pincompute.kube.sender import Asked
from pincompute.objects.content import Object

pytestmark = pytest.mark.cluster


async def edit(here: World, resource: Resource, body: Object, manager: str = "kubectl-edit") -> None:
    await here.client.patch(resource, "hello", here.project, body, style="merge", manager=manager)


async def until(here: World, resource: Resource, holds: Callable[[Object], object]) -> None:
    async with asyncio.timeout(60):
        while True:
            async with aclosing(here.client.watch(resource, here.project)) as events:
                async for event in events:
                    if holds(event.object):
                        return


async def notes(here: World) -> list[str]:
    events = (await here.client.list(EVENTS, here.project)).items
    return [each["note"] for each in events if each["reason"] == "PutBack"]


def container(deployment: Object) -> Object:
    (only,) = deployment["spec"]["template"]["spec"]["containers"]
    return dict(only)


async def made(here: World) -> None:
    await here.write(replicas=2)
    await here.until("Progressing", 1)
    await here.settled()


async def test_a_field_that_somebody_set_is_put_back_and_told(plane: ControlPlane) -> None:
    async with world(plane) as here:
        await made(here)
        await edit(here, DEPLOYMENTS, {"spec": {"replicas": 5}})
        await until(here, EVENTS, lambda seen: seen["reason"] == "PutBack")
        assert (await here.client.get(DEPLOYMENTS, "hello", here.project))["spec"]["replicas"] == 2
        (note,) = await notes(here)
        assert note.startswith("Deployment/hello was edited by hand and is as before: ")
        assert note.endswith("spec.replicas was set to 5 instead of 2 by kubectl-edit")
        # By another way, and of a 0 the server keeps no record.
        await here.client.patch(
            DEPLOYMENTS, "hello", here.project, {"spec": {"replicas": 0}}, style="merge", manager="kubectl",
            subresource="scale",
        )  # fmt: skip
        await until(here, EVENTS, lambda seen: seen["note"].endswith("spec.replicas was set to 0 instead of 2"))
        assert (await here.client.get(DEPLOYMENTS, "hello", here.project))["spec"]["replicas"] == 2


async def test_what_somebody_added_to_what_runs_is_taken_away(plane: ControlPlane) -> None:
    async with world(plane) as here:
        await made(here)
        deployment = await here.client.get(DEPLOYMENTS, "hello", here.project)
        before = container(deployment)
        changed = {**before, "command": ["sh"], "env": [{"name": "PASSWORD", "value": "hunter2"}, *before["env"]]}
        path = "/spec/template/spec/containers/0"
        body = [{"op": "replace", "path": path, "value": changed}]
        await here.client.patch(DEPLOYMENTS, "hello", here.project, body, style="json", manager="kubectl-edit")
        await until(here, EVENTS, lambda seen: seen["reason"] == "PutBack")
        assert container(await here.client.get(DEPLOYMENTS, "hello", here.project)) == before
        (note,) = await notes(here)
        assert "spec.template.spec.containers.hello.env.PASSWORD was added by kubectl-edit" in note
        assert "hunter2" not in note


async def test_what_somebody_took_away_is_put_back(plane: ControlPlane) -> None:
    async with world(plane) as here:
        await made(here)
        await edit(here, DEPLOYMENTS, {"metadata": {"labels": {PROJECT: None}}})
        await until(here, EVENTS, lambda seen: seen["reason"] == "PutBack")
        labels = (await here.client.get(DEPLOYMENTS, "hello", here.project))["metadata"]["labels"]
        assert labels[PROJECT] == here.project
        assert f"metadata.labels.{PROJECT} was removed" in (await notes(here))[0]


async def test_a_label_that_leads_to_another_workload_is_put_back(plane: ControlPlane) -> None:
    async with world(plane) as here:
        await made(here)
        await edit(here, SERVICES, {"metadata": {"labels": {WORKLOAD: "another"}}})
        await until(here, SERVICES, lambda seen: seen["metadata"]["labels"].get(WORKLOAD) == "hello")


async def test_who_writes_beside_what_is_ours_is_looked_at_once_and_left_alone(plane: ControlPlane) -> None:
    async with world(plane) as here:
        await made(here)
        asked = here.operator.traffic.requests
        gets = asked[Asked("get", "deployments", 200)]
        await edit(here, DEPLOYMENTS, {"metadata": {"annotations": {"example.com/note": "mine"}}}, "somebody")
        await until(here, DEPLOYMENTS, lambda seen: "example.com/note" in seen["metadata"]["annotations"])
        await here.settled()
        assert asked[Asked("get", "deployments", 200)] == gets + 1
        before = dict(asked)
        here.loops.planned.touch(Key(here.project, "hello"))
        await here.settled()
        assert {each: count for each, count in asked.items() if each.verb != "watch"} == {
            each: count for each, count in before.items() if each.verb != "watch"
        }
        deployment = await here.client.get(DEPLOYMENTS, "hello", here.project)
        assert deployment["metadata"]["annotations"]["example.com/note"] == "mine"
        assert await notes(here) == []


async def test_what_happens_to_a_workload_is_told_once(plane: ControlPlane) -> None:
    async with world(plane) as here:
        await made(here)
        await here.write(replicas=0)
        await here.until("Available", 2)
        await until(here, EVENTS, lambda seen: seen["reason"] == "Available")
        await here.settled()
        events = (await here.client.list(EVENTS, here.project)).items
        told = sorted((each["reason"], each["note"]) for each in events)
        assert [reason for reason, _ in told] == ["Available", "RolloutBegan", "RolloutBegan"]
        assert [note for _, note in told[1:]] == ["hello@1 is being made so", "hello@2 is being made so"]
        assert {each["regarding"]["name"] for each in events} == {"hello"}
        assert {each["reportingController"] for each in events} == {OPERATOR}

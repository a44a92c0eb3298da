"""What workloads are planned by, against a real API server: projects are made so, and runtimes reach workloads."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager

import pytest
import yaml

from control_plane import ControlPlane
from operated import World, world
from pincompute.api.names import COST_CENTRE, ENGINE, HAND, OWNER, PROJECT
from pincompute.api.names import PARTS as INJECTED
from pincompute.controller.resources import NOUNS
from pincompute.engine.bootstrap import MANIFESTS
from pincompute.kube.resource import CLUSTER_ROLES, DEPLOYMENTS, NAMESPACES, NETWORK_POLICIES, RESOURCE_QUOTAS, Resource
from pincompute.objects.content import Object

pytestmark = pytest.mark.cluster

PROJECTS, RUNTIMES, PARTS = NOUNS["Project"], NOUNS["Runtime"], NOUNS["PinterestSidecar"]


async def until(
    here: World, resource: Resource, name: str, holds: Callable[[Object], object], project: str = ""
) -> Object:
    async with asyncio.timeout(60):
        while True:
            events = here.client.watch(resource, project, fields=f"metadata.name={name}")
            async with aclosing(events):
                async for event in events:
                    if holds(event.object):
                        return event.object


def reason(seen: Object) -> str:
    return next((str(each["reason"]) for each in seen.get("status", {}).get("conditions", ())), "")


def message(seen: Object) -> str:
    return next((str(each["message"]) for each in seen.get("status", {}).get("conditions", ())), "")


async def write_project(here: World, name: str, **spec: object) -> None:
    for each in yaml.safe_load_all((MANIFESTS / "roles.yaml").read_text()):
        await here.client.apply(each, CLUSTER_ROLES, manager=ENGINE)
    body: Object = {"metadata": {"name": name}, "spec": {"owner": "team-ads", "quota": {"on-demand": {}}, **spec}}
    await here.client.apply(body, PROJECTS, manager=HAND)


async def count(here: World, project: str) -> None:
    """As the quota controller does, where none runs."""
    for quota in (await here.client.list(RESOURCE_QUOTAS, project)).items:
        hard = quota["spec"]["hard"]
        status = {"status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}
        await here.client.patch(
            RESOURCE_QUOTAS, quota["metadata"]["name"], project, status,
            style="merge", manager="test", subresource="status",
        )  # fmt: skip


async def test_a_project_becomes_its_namespace_and_what_lies_in_it(plane: ControlPlane) -> None:
    async with world(plane) as here:
        name = f"t-{secrets.token_hex(4)}"
        await write_project(here, name, members={"deployer": {"people": ["ben"]}}, review="open")
        await until(here, PROJECTS, name, lambda seen: "counted" in message(seen))
        await count(here, name)
        await until(here, PROJECTS, name, lambda seen: reason(seen) == "Available")
        assert len((await here.client.list(NETWORK_POLICIES, name)).items) == 3
        await here.client.delete(NETWORK_POLICIES, "from-project", name)
        await until(here, NETWORK_POLICIES, "from-project", bool, name)
        # What is no longer wanted goes.
        await write_project(here, name, callers=["search"])
        await until(here, NETWORK_POLICIES, "from-callers", bool, name)
        await write_project(here, name)
        await until(here, PROJECTS, name, lambda seen: seen["status"]["observedGeneration"] == 3)
        await here.settled()
        assert len((await here.client.list(NETWORK_POLICIES, name)).items) == 3


async def test_a_namespace_of_somebody_else_is_told_and_not_touched(plane: ControlPlane) -> None:
    async with world(plane) as here:
        await write_project(here, here.project)
        seen = await until(here, PROJECTS, here.project, lambda seen: reason(seen) == "NotOurs")
        assert f"Namespace/{here.project} exists already" in message(seen)
        metadata = (await here.client.get(NAMESPACES, here.project))["metadata"]
        assert "ownerReferences" not in metadata
        assert metadata["labels"][PROJECT] == here.project
        await here.client.delete(PROJECTS, here.project)


async def test_what_a_project_says_reaches_its_workloads(plane: ControlPlane) -> None:
    async with world(plane) as here:
        await here.write()
        await here.until("Progressing", 1)
        await write_project(here, here.project, costCentre="4711")
        paid = await until(here, DEPLOYMENTS, "hello", lambda seen: COST_CENTRE in said(seen), here.project)
        assert said(paid)[COST_CENTRE] == "4711"
        assert said(paid)[OWNER] == "team-ads"
        await here.client.delete(PROJECTS, here.project)


def said(native: Object) -> dict[str, str]:
    annotations: dict[str, str] = native["metadata"]["annotations"]
    return annotations


@asynccontextmanager
async def runtime(here: World, name: str, parts: list[str], **roll: object) -> AsyncGenerator[None]:
    """The cluster is shared: what all workloads of all projects would get is taken away again."""
    for part in parts:
        body = {"metadata": {"name": part}, "spec": {"image": f"{part}:1.0"}}
        await here.client.apply(body, PARTS, manager=HAND)
    spec = {"parts": parts, "roll": {"pauseSeconds": 0, **roll}}
    await here.client.apply({"metadata": {"name": name}, "spec": spec}, RUNTIMES, manager=HAND)
    try:
        yield
    finally:
        await here.client.delete(RUNTIMES, name)
        for part in parts:
            await here.client.delete(PARTS, part)


def parts_of(deployment: Object) -> list[str]:
    pod = deployment["spec"]["template"]["spec"]
    return [each["name"] for each in (*pod.get("initContainers", ()), *pod["containers"])]


async def test_a_runtime_rolls_by_itself_and_goes_on_when_those_it_reached_are_well(plane: ControlPlane) -> None:
    async with world(plane) as here:
        await here.write(replicas=0)
        await here.until("Available", 1)
        async with runtime(here, "1", ["beside-1"], waves=[100]):
            await until(here, RUNTIMES, "1", lambda seen: seen.get("status", {}).get("done"))
            deployment = await here.client.get(DEPLOYMENTS, "hello", here.project)
            assert deployment["spec"]["template"]["metadata"]["annotations"][INJECTED] == "beside-1"
            assert parts_of(deployment) == ["beside", "hello"]
            part = await until(here, PARTS, "beside-1", lambda seen: seen.get("status", {}).get("runtimes"))
            assert part["status"]["runtimes"] == [1]
            # One that is never ready keeps the next from going on.
            await here.write(replicas=1)
            await here.settled()
            async with runtime(here, "2", ["beside-2"], waves=[100]):
                seen = await until(here, RUNTIMES, "2", lambda seen: "0 of 1 workloads have it" in message(seen))
                assert seen["status"]["wave"] == "1 of 1"
                await here.write(replicas=0)
                await until(here, RUNTIMES, "2", lambda seen: seen["status"].get("done"))
        await until(here, DEPLOYMENTS, "hello", lambda seen: parts_of(seen) == ["hello"], here.project)

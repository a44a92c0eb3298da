"""Projects and runtimes, against a real API server: their natives, and how they reach workloads."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager

import pytest
import yaml

from control_plane import ControlPlane
from pincompute.api.names import (
    CLI_MANAGER,
    COST_CENTRE_ANNOTATION,
    ENGINE,
    OWNER_ANNOTATION,
    PARTS_ANNOTATION as INJECTED,
    PROJECT_LABEL,
)
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.engine.manifest_files import MANIFESTS
from pincompute.kube.resource import (
    CLUSTER_ROLES,
    DAEMON_SETS,
    DEPLOYMENTS,
    NAMESPACES,
    NETWORK_POLICIES,
    RESOURCE_QUOTAS,
    Resource,
)
from pincompute.objects.content import Object
from running_operator import OperatedCluster, operated_cluster

pytestmark = pytest.mark.cluster

PROJECTS, RUNTIMES, PARTS = (
    CUSTOM_RESOURCES["Project"],
    CUSTOM_RESOURCES["Runtime"],
    CUSTOM_RESOURCES["PinterestSidecar"],
)


async def wait_until(
    operated: OperatedCluster, resource: Resource, name: str, predicate: Callable[[Object], object], project: str = ""
) -> Object:
    async with asyncio.timeout(60):
        while True:
            events = operated.client.watch(resource, project, fields=f"metadata.name={name}")
            async with aclosing(events):
                async for event in events:
                    if predicate(event.object):
                        return event.object


def first_reason(seen: Object) -> str:
    return next((str(each["reason"]) for each in seen.get("status", {}).get("conditions", ())), "")


def first_message(seen: Object) -> str:
    return next((str(each["message"]) for each in seen.get("status", {}).get("conditions", ())), "")


async def write_project(operated: OperatedCluster, name: str, **spec: object) -> None:
    for each in yaml.safe_load_all((MANIFESTS / "roles.yaml").read_text()):
        await operated.client.apply(each, CLUSTER_ROLES, manager=ENGINE)
    body: Object = {"metadata": {"name": name}, "spec": {"owner": "team-ads", "quota": {"on-demand": {}}, **spec}}
    await operated.client.apply(body, PROJECTS, manager=CLI_MANAGER)


async def update_quota_status(operated: OperatedCluster, project: str) -> None:
    """Updates the quota status in place of the quota controller, which does not run operated."""
    for quota in (await operated.client.list(RESOURCE_QUOTAS, project)).items:
        hard = quota["spec"]["hard"]
        status = {"status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}
        await operated.client.patch(
            RESOURCE_QUOTAS, quota["metadata"]["name"], project, status,
            style="merge", manager="test", subresource="status",
        )  # fmt: skip


async def test_project_becomes_namespace_with_contents(plane: ControlPlane) -> None:
    async with operated_cluster(plane) as operated:
        name = f"t-{secrets.token_hex(4)}"
        await write_project(operated, name, members={"deployer": {"people": ["ben"]}}, review="open")
        await wait_until(operated, PROJECTS, name, lambda seen: "not enforced yet" in first_message(seen))
        await update_quota_status(operated, name)
        await wait_until(operated, PROJECTS, name, lambda seen: first_reason(seen) == "Available")
        assert len((await operated.client.list(NETWORK_POLICIES, name)).items) == 5
        await operated.client.delete(NETWORK_POLICIES, "from-project", name)
        await wait_until(operated, NETWORK_POLICIES, "from-project", bool, name)
        # Policies that are no longer wanted are deleted.
        await write_project(operated, name, callers=["search"])
        await wait_until(operated, NETWORK_POLICIES, "from-callers", bool, name)
        await write_project(operated, name)
        await wait_until(operated, PROJECTS, name, lambda seen: seen["status"]["observedGeneration"] == 3)
        await operated.wait_settled()
        assert len((await operated.client.list(NETWORK_POLICIES, name)).items) == 5


async def test_reports_namespace_of_other_owner_and_leaves_it_alone(plane: ControlPlane) -> None:
    async with operated_cluster(plane) as operated:
        await write_project(operated, operated.project)
        seen = await wait_until(operated, PROJECTS, operated.project, lambda seen: first_reason(seen) == "NotOwned")
        assert f"Namespace/{operated.project} exists already" in first_message(seen)
        metadata = (await operated.client.get(NAMESPACES, operated.project))["metadata"]
        assert "ownerReferences" not in metadata
        assert metadata["labels"][PROJECT_LABEL] == operated.project
        await operated.client.delete(PROJECTS, operated.project)


async def test_project_fields_reach_its_workloads(plane: ControlPlane) -> None:
    async with operated_cluster(plane) as operated:
        await operated.write()
        await operated.wait_for_reason("Progressing", 1)
        await write_project(operated, operated.project, costCentre="4711")
        deployment = await wait_until(
            operated,
            DEPLOYMENTS,
            "hello",
            lambda seen: COST_CENTRE_ANNOTATION in annotations_of(seen),
            operated.project,
        )
        assert annotations_of(deployment)[COST_CENTRE_ANNOTATION] == "4711"
        assert annotations_of(deployment)[OWNER_ANNOTATION] == "team-ads"
        await operated.client.delete(PROJECTS, operated.project)


def annotations_of(native: Object) -> dict[str, str]:
    annotations: dict[str, str] = native["metadata"]["annotations"]
    return annotations


@asynccontextmanager
async def temporary_runtime(
    operated: OperatedCluster, name: str, parts: list[str], daemons: Sequence[str] = (), **roll: object
) -> AsyncGenerator[None]:
    """A temporary_runtime for the duration of a block. The cluster is shared, so it must not reach workloads of other
    tests."""
    for part in parts:
        body = {"metadata": {"name": part}, "spec": {"image": f"{part}:1.0"}}
        await operated.client.apply(body, PARTS, manager=CLI_MANAGER)
    spec = {"parts": parts, "daemons": list(daemons), "roll": {"pauseSeconds": 0, **roll}}
    await operated.client.apply({"metadata": {"name": name}, "spec": spec}, RUNTIMES, manager=CLI_MANAGER)
    try:
        yield
    finally:
        await operated.client.delete(RUNTIMES, name)
        for part in parts:
            await operated.client.delete(PARTS, part)


def parts_of(deployment: Object) -> list[str]:
    pod = deployment["spec"]["template"]["spec"]
    return [each["name"] for each in (*pod.get("initContainers", ()), *pod["containers"])]


async def test_roll_continues_when_reached_workloads_are_healthy(plane: ControlPlane) -> None:
    async with operated_cluster(plane) as operated:
        await operated.write(replicas=0)
        await operated.wait_for_reason("Available", 1)
        async with temporary_runtime(operated, "1", ["beside-1"], waves=[100]):
            await wait_until(operated, RUNTIMES, "1", lambda seen: seen.get("status", {}).get("done"))
            deployment = await operated.client.get(DEPLOYMENTS, "hello", operated.project)
            assert deployment["spec"]["template"]["metadata"]["annotations"][INJECTED] == "beside-1"
            assert parts_of(deployment) == ["beside", "hello"]
            part = await wait_until(operated, PARTS, "beside-1", lambda seen: seen.get("status", {}).get("runtimes"))
            assert part["status"]["runtimes"] == [1]
            # A workload that is never ready predicate up the next roll.
            await operated.write(replicas=1)
            await operated.wait_settled()
            async with temporary_runtime(operated, "2", ["beside-2"], waves=[100]):
                seen = await wait_until(
                    operated, RUNTIMES, "2", lambda seen: "0 of 1 workloads healthy" in first_message(seen)
                )
                assert seen["status"]["wave"] == "1 of 1"
                await operated.write(replicas=0)
                await wait_until(operated, RUNTIMES, "2", lambda seen: seen["status"].get("done"))
        await wait_until(operated, DEPLOYMENTS, "hello", lambda seen: parts_of(seen) == ["hello"], operated.project)


def image_of(daemon_set: Object) -> str:
    image: str = daemon_set["spec"]["template"]["spec"]["containers"][0]["image"]
    return image


async def test_roll_begins_with_pinned_daemons_and_a_stop_puts_them_back(plane: ControlPlane) -> None:
    daemons = CUSTOM_RESOURCES["PinterestDaemon"]
    async with operated_cluster(plane) as operated:
        project = operated.project
        for version in (1, 2):
            body: Object = {
                "metadata": {"name": "shipper", "namespace": project},
                "spec": {"image": f"shipper:{version}"},
            }
            await operated.client.apply(body, daemons, manager=CLI_MANAGER)
            await wait_until(
                operated, daemons, "shipper", lambda seen, number=version: revision_of(seen) == number, project
            )
        assert image_of(await operated.client.get(DAEMON_SETS, "shipper", project)) == "shipper:2"
        async with temporary_runtime(operated, "5", ["beside-5"], [f"{project}/shipper@1"], waves=[100]):
            await wait_until(operated, DAEMON_SETS, "shipper", lambda seen: image_of(seen) == "shipper:1", project)
            # No node of this cluster runs it, so that it never becomes healthy, and no workload is reached.
            waiting = "wave 0 of 1 (pinned daemons): 0 of 1 workloads healthy"
            await wait_until(operated, RUNTIMES, "5", lambda seen: first_message(seen) == waiting)
            status = (await operated.client.get(daemons, "shipper", project))["status"]
            assert (status["revision"], status["pinnedRevision"], status["pinnedBy"]) == (2, 1, 5)
            stop: Object = {"spec": {"roll": {"stopped": "ann"}}}
            await operated.client.patch(RUNTIMES, "5", "", stop, style="merge", manager=CLI_MANAGER)
            await wait_until(operated, DAEMON_SETS, "shipper", lambda seen: image_of(seen) == "shipper:2", project)
        async with temporary_runtime(operated, "6", ["beside-6"], [f"{project}/shipper@9"], waves=[100]):
            seen = await wait_until(operated, RUNTIMES, "6", lambda seen: first_reason(seen) == "PinnedRevisionMissing")
            assert f"runtime 6 pins {project}/shipper@9, a revision without a record" in first_message(seen)


def revision_of(seen: Object) -> int:
    number: int = seen.get("status", {}).get("revision", 0)
    return number

"""When the world outside misbehaves: it is told, the rest goes on, and it heals by itself. A real API server."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml

from control_plane import ControlPlane
from forwarder import Forwarder
from operated import CLUSTER, World, world
from pincompute import engine
from pincompute.api.names import ENGINE, HAND, OPERATOR
from pincompute.controller.resources import NOUNS
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError
from pincompute.kube.resource import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CRDS,
    DEPLOYMENTS,
    EVENTS,
    NAMESPACES,
    SERVICES,
)
from pincompute.objects.content import Object
from pincompute.operator.health import told
from pincompute.operator.loops import Loops
from real_platform import PATIENCE, until

pytestmark = pytest.mark.cluster

PINTEREST_SERVICES = NOUNS["PinterestService"]


async def test_a_namespace_that_goes_away_is_told_and_nothing_more_is_made(plane: ControlPlane) -> None:
    async with world(plane) as here:
        await here.write()
        await here.until("Progressing", 1)
        await here.settled()
        # Nobody empties it here, so it stays at its end for as long as this test goes.
        await here.client.delete(NAMESPACES, here.project)
        await here.client.delete(SERVICES, "hello", here.project)
        summary = await here.until("ProjectEnding", 1)
        assert f"the namespace {here.project} is being removed" in summary.message
        asked = here.operator.traffic.requests.total()
        await asyncio.sleep(1)
        # It is tried again, ever more seldom.
        assert here.operator.traffic.requests.total() - asked < 10


@asynccontextmanager
async def rights(plane: ControlPlane, without: str) -> AsyncGenerator[tuple[Client, Object]]:
    """The operator's own rights, but for one kind; and all of them, to be given back."""
    documents = list(yaml.safe_load_all((Path(engine.__file__).parent / "manifests" / "access.yaml").read_text()))
    role = next(each for each in documents if each["metadata"]["name"] == OPERATOR and each["kind"] == "ClusterRole")
    binding = next(
        each for each in documents if each["metadata"]["name"] == OPERATOR and each["kind"] == "ClusterRoleBinding"
    )
    less = {**role, "rules": [each for each in role["rules"] if without not in each["resources"]]}
    async with Client(plane.access(), agent="tests") as client:
        await client.apply(less, CLUSTER_ROLES, manager=ENGINE)
        await client.apply(binding, CLUSTER_ROLE_BINDINGS, manager=ENGINE)
        yield client, role


async def test_a_right_that_was_taken_is_told_and_its_return_needs_no_restart(plane: ControlPlane) -> None:
    async with rights(plane, "ingresses") as (client, all_of_them), world(plane, plane.access(OPERATOR, ())) as here:
        await here.write()
        summary = await here.until("RightsMissing", 1)
        assert "ingresses.networking.k8s.io is forbidden" in summary.message
        # The others are made all the same.
        await here.client.get(DEPLOYMENTS, "hello", here.project)
        assert "Ingress: ingresses.networking.k8s.io is forbidden" in told(here.loops)
        await client.apply(all_of_them, CLUSTER_ROLES, manager=ENGINE)
        await here.until("Progressing", 1)
        await here.natives()
        # It is made by whoever may, and is seen when it is asked for again.
        async with asyncio.timeout(PATIENCE):
            while "Ingress" in told(here.loops):  # noqa: ASYNC110  (a person reads it, and is not told)
                await asyncio.sleep(0.02)


@asynccontextmanager
async def former_schema(client: Client) -> AsyncGenerator[None]:
    """As the kind was when its specs were free."""
    name = f"{PINTEREST_SERVICES.plural}.{PINTEREST_SERVICES.group}"
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec"
    now = await client.get(CRDS, name)
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    rules = {"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/x-kubernetes-validations"}
    schema = now["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    patches = [{"op": "replace", "path": path, "value": free}]
    if "x-kubernetes-validations" in schema:
        patches.append(rules)
    await client.patch(CRDS, name, "", patches, style="json", manager=ENGINE)
    try:
        yield
    finally:
        back = [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": schema}]
        await client.patch(CRDS, name, "", back, style="json", manager=ENGINE)


async def old(here: World, name: str) -> None:
    """The server takes a while to go by the schema that it was given."""
    body: Object = {"metadata": {"name": name, "namespace": here.project}, "spec": {"image": 7, "formerly": True}}
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await here.client.create(PINTEREST_SERVICES, body, manager=HAND)
            except ApiError:
                await asyncio.sleep(0.2)
            else:
                return


async def test_what_cannot_be_read_is_told_and_the_others_go_on(plane: ControlPlane) -> None:
    async with world(plane) as here:
        async with former_schema(here.client):
            await old(here, "old")
            seen = await until(here.client, PINTEREST_SERVICES, here.project, _is_judged, "old")
            conditions = seen["status"]["conditions"]
            assert [(each["type"], each["status"], each["reason"]) for each in conditions] == [
                ("Ready", "Unknown", "SpecUnreadable")
            ]
            assert "PinterestService old cannot be read: " in conditions[0]["message"]
        await here.write()
        await here.until("Progressing", 1)
        await here.settled()
        # Written again, it is as any other.
        good: Object = {"metadata": {"name": "old", "namespace": here.project}, "spec": {"image": "old:1", "port": 80}}
        await here.client.delete(PINTEREST_SERVICES, "old", here.project)
        await here.client.create(PINTEREST_SERVICES, good, manager=HAND)
        await until(here.client, DEPLOYMENTS, here.project, bool, "old")


def _is_judged(workload: Object) -> bool:
    return bool(workload.get("status", {}).get("conditions"))


async def test_a_server_that_was_away_is_met_with_patience_and_what_was_missed_is_done(
    plane: ControlPlane,
) -> None:
    async with Forwarder(plane.port) as forwarder, world(plane, plane.access(port=forwarder.port)) as here:
        await here.write()
        await here.until("Progressing", 1)
        await here.settled()
        await forwarder.cut()
        await here.write(image="hello:2")
        asked = here.operator.traffic.requests.total()
        await asyncio.sleep(2)
        watched = len(here.loops.view.ages())
        assert here.operator.traffic.requests.total() - asked < watched * 10
        forwarder.mend()
        await here.until("Progressing", 2)
        _, deployment, _ = await here.natives()
        assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "hello:2"


async def test_killed_in_the_midst_of_a_rollout_and_begun_anew_it_ends_as_if_undisturbed(plane: ControlPlane) -> None:
    async with world(plane) as here:
        names = [f"hello-{number}" for number in range(8)]
        chance = random.Random(7)
        for image in ("hello:1", "hello:2"):
            for name in names:
                body: Object = {
                    "metadata": {"name": name, "namespace": here.project},
                    "spec": {"image": image, "port": 80, "replicas": 0},
                }
                await here.client.apply(body, PINTEREST_SERVICES, manager=HAND)
            for _ in range(4):
                await lives(plane, chance.uniform(0.05, 0.6))
        await here.settled()
        deployments = (await here.client.list(DEPLOYMENTS, here.project)).items
        images = {
            each["metadata"]["name"]: each["spec"]["template"]["spec"]["containers"][0]["image"] for each in deployments
        }
        assert images == dict.fromkeys(names, "hello:2")
        assert len((await here.client.list(SERVICES, here.project)).items) == len(names)
        # Whoever of them told it, it is told once.
        events = (await here.client.list(EVENTS, here.project)).items
        assert all(each["reason"] != "PutBack" for each in events)
        assert len({each["note"] for each in events}) == len(events)


async def lives(plane: ControlPlane, seconds: float) -> None:
    """One more operator, beside the world's own: as a former leader that does not know yet, and is killed."""
    async with Client(plane.access(), agent="operator") as client:
        running = asyncio.create_task(Loops(client, CLUSTER).run())
        await asyncio.wait({running}, timeout=seconds)
        running.cancel()
        await asyncio.wait({running})

"""A project on a real API server: what it becomes is accepted, and holds against those who would go past it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
import pytest
import yaml

from control_plane import ControlPlane
from pincompute.api.admission import admit
from pincompute.api.documents import read
from pincompute.api.names import ENGINE, HAND, OPERATOR
from pincompute.api.project import Project
from pincompute.controller.resources import NOUNS
from pincompute.engine.bootstrap import MANIFESTS
from pincompute.kube import resource as kinds
from pincompute.kube.client import Client
from pincompute.kube.errors import Forbidden, Invalid
from pincompute.kube.resource import PODS, RESOURCE_QUOTAS, Resource
from pincompute.objects.content import Object
from pincompute.planning.project import plan
from pincompute.planning.snapshot import Cluster, Native, Snapshot
from transcripts import ROOT
from workloads import HELLO, cluster

pytestmark = pytest.mark.cluster

HERE = {each.kind: each for each in (kinds.NAMESPACES, RESOURCE_QUOTAS, kinds.ROLE_BINDINGS, kinds.NETWORK_POLICIES)}
PROJECTS = NOUNS["Project"]


class World(NamedTuple):
    plane: ControlPlane
    client: Client

    async def make(self, document: Object) -> tuple[str, list[Object]]:
        """A project, and all that it becomes: first its namespace, then what lies in it."""
        written = await self.client.apply(document, PROJECTS, manager=HAND)
        snapshot = Snapshot(
            owner=msgspec.convert(written, Project),
            natives=(),
            pods=(),
            cluster=Cluster(name="test", domain="localhost", port=80),
            now=datetime.now(UTC),
        )
        made: list[Object] = []
        while len(made) < len(wanted := plan(snapshot).wanted):
            made += [await self._create(each) for each in wanted[len(made) :]]
            snapshot = snapshot._replace(natives=tuple(msgspec.convert(made, list[Native])))
        return written["metadata"]["name"], made

    async def play_controller(self, project: str) -> None:
        """What the quota controller does, where none runs: only what is counted holds."""
        for quota in (await self.client.list(RESOURCE_QUOTAS, project)).items:
            hard = quota["spec"]["hard"]
            status = {"status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}
            await self.client.patch(
                RESOURCE_QUOTAS, quota["metadata"]["name"], project, status,
                style="merge", manager="test", subresource="status",
            )  # fmt: skip

    async def refusal(self, project: str, tier: str) -> str:
        """The API server hears of a quota, and that it is counted, a moment after it is."""
        async with asyncio.timeout(60):
            while True:
                try:
                    await self.try_out(PODS, project, pod(tier))
                except Forbidden as error:
                    if "status unknown" not in error.message:
                        return error.message

    async def try_out(self, resource: Resource, project: str, body: Object, client: Client | None = None) -> None:
        path, encoded = resource.path(project), msgspec.json.encode(body)
        await (client or self.client).raw("POST", path, query={"dryRun": "All"}, body=encoded)

    async def _create(self, native: Object) -> Object:
        made = await self.client.create(HERE[native["kind"]], native, manager=OPERATOR)
        return {**made, "kind": native["kind"]}


@asynccontextmanager
async def world(plane: ControlPlane) -> AsyncGenerator[World]:
    async with cluster(plane) as client:
        for file, resource in (("tiers", kinds.PRIORITY_CLASSES), ("roles", kinds.CLUSTER_ROLES)):
            for each in yaml.safe_load_all((MANIFESTS / f"{file}.yaml").read_text()):
                await client.apply(each, resource, manager=ENGINE)
        yield World(plane, client)


def project(**spec: Any) -> Object:
    name = f"t-{secrets.token_hex(4)}"
    return {"metadata": {"name": name}, "spec": {"owner": "team-ads", "quota": {"on-demand": {}}, **spec}}


def pod(tier: str = "", **container: Any) -> Object:
    """One that is as restricted as it must be."""
    rights = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}
    main = {"name": "a", "image": "a", "securityContext": rights, "resources": resources, **container}
    spec: Object = {
        "containers": [main],
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    }
    return {"metadata": {"name": "a"}, "spec": {**spec, **({"priorityClassName": tier} if tier else {})}}


@pytest.mark.parametrize("file", ["examples/project.yaml", "examples/long/project.yaml"])
async def test_what_the_examples_become_is_accepted(plane: ControlPlane, file: str) -> None:
    (document,) = read((ROOT / file).read_text(), file)
    admit(document, "")
    async with world(plane) as here:
        content = {**document.content, "metadata": {"name": f"t-{secrets.token_hex(4)}"}}
        name, made = await here.make(content)
        assert {each["kind"] for each in made} == HERE.keys()
        for each in made:
            again = {key: value for key, value in each.items() if key != "status"}
            again["metadata"] = {key: each["metadata"][key] for key in ("name", "labels", "annotations")}
            again["metadata"] |= {"namespace": name} if each["kind"] != "Namespace" else {}
            await here.client.apply(again, HERE[each["kind"]], manager=OPERATOR)


async def test_a_pod_has_a_tier_and_the_tier_has_room(plane: ControlPlane) -> None:
    async with world(plane) as here:
        quota: Object = {"reserved": {"cpu": "500m"}, "on-demand": {}}
        name, _ = await here.make(project(quota=quota))
        await here.play_controller(name)
        assert "exceeded quota: no-tier, requested: pods=1" in await here.refusal(name, "")
        assert "exceeded quota: infrastructure" in await here.refusal(name, "pincompute-infrastructure")
        assert "exceeded quota: preemptible, requested: pods=1" in await here.refusal(name, "pincompute-preemptible")
        assert "exceeded quota: reserved, requested: requests.cpu=1" in await here.refusal(name, "pincompute-reserved")
        await here.try_out(PODS, name, pod("pincompute-on-demand"))


async def test_nobody_runs_as_root(plane: ControlPlane) -> None:
    async with world(plane) as here:
        name, _ = await here.make(project())
        with pytest.raises(Forbidden, match='violates PodSecurity "restricted:latest"'):
            await here.try_out(PODS, name, pod("pincompute-on-demand", securityContext={"runAsUser": 0}))


@pytest.mark.parametrize(("review", "allowed"), [("landed", False), ("open", True)])
async def test_past_the_desk_work_comes_in_only_where_review_is_open(
    plane: ControlPlane, review: str, allowed: bool
) -> None:
    async with world(plane) as here, client_of(plane, "ben") as ben, client_of(plane, "eve") as eve:
        members = {"deployer": {"people": ["ben"]}, "viewer": {"people": ["eve"]}}
        name, _ = await here.make(project(members=members, review=review))
        services, hello = NOUNS["PinterestService"], yaml.safe_load(HELLO)
        for client in (ben, eve):
            await until_allowed(lambda client=client: client.list(services, name))
        if allowed:
            await until_allowed(lambda: here.try_out(services, name, hello, ben))
        else:
            with pytest.raises(Forbidden):
                await here.try_out(services, name, hello, ben)
        for client in (ben, eve):
            with pytest.raises(Forbidden):
                await here.try_out(PODS, name, pod("pincompute-on-demand"), client)
            with pytest.raises(Forbidden):
                await client.list(kinds.SECRETS, name)
        with pytest.raises(Forbidden):
            await here.try_out(services, name, hello, eve)


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (project(quota={}), "names no tier, so that nothing could ever run"),
        (project(quota={"storage": "1Ti"}), "names no tier"),
        ({**project(), "metadata": {"name": "kube-mine"}}, "the cluster's own"),
        ({**project(), "metadata": {"name": "default"}}, "the cluster's own"),
        ({**project(), "metadata": {"name": "a" * 51}}, "at most 50"),
        (project(owner=""), "spec.owner"),
        (project(quota={"on-demand": {"cpu": "many"}}), "spec.quota.on-demand.cpu"),
    ],
)
async def test_what_makes_no_sense_is_refused_past_our_door_too(
    plane: ControlPlane, document: Object, told: str
) -> None:
    async with world(plane) as here:
        with pytest.raises(Invalid, match=told):
            await here.client.apply(document, PROJECTS, manager=HAND)


async def until_allowed(ask: Callable[[], Awaitable[object]]) -> None:
    """The API server hears of a right a moment after it is given."""
    async with asyncio.timeout(60):
        while True:
            try:
                await ask()
            except Forbidden:
                continue
            return


@asynccontextmanager
async def client_of(plane: ControlPlane, user: str) -> AsyncGenerator[Client]:
    async with Client(plane.access(user, ()), agent="tests") as client:
        yield client

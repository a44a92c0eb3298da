"""What is told of a project: to whoever may look at it, by the ledger; and by its cluster, where there is no desk."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from control_plane import ControlPlane
from desks import holds
from pincompute.api.names import API_VERSION, ENGINE
from pincompute.api.policy import Policy
from pincompute.api.tenancy import Tenancy, Tenant
from pincompute.base.problem import Problem
from pincompute.base.reasons import CLUSTER_UNREACHABLE
from pincompute.cli.cluster import ClusterPort
from pincompute.controller.resources import NOUNS
from pincompute.kube.resource import Object
from pincompute.planning.quotas.footprint import Place
from pincompute.submission.kubernetes import Kubernetes
from pincompute.submission.platform import Away, Delivered, Order
from tenants import tenants
from workloads import HELLO

pytestmark = pytest.mark.cluster


async def test_everybody_is_told_of_their_own(plane: ControlPlane, tmp_path: Path) -> None:
    async with tenants(plane, tmp_path) as here:
        for who, theirs in (("vera", {here.ads}), ("otto", {here.search}), ("eve", set[str]()), ("dan", {here.ads})):
            told = await here.ask(who, "GET", "/projects")
            assert {each["project"] for each in told.body} == theirs
        everything = msgspec.convert((await here.ask("root", "GET", "/projects")).body, list[Tenant])
        assert {here.ads, here.search} <= {each.project for each in everything}
        (mine,) = msgspec.convert((await here.ask("vera", "GET", "/projects")).body, list[Tenant])
        assert (mine.owner, mine.role) == (f"team-{here.ads}", "viewer")


async def test_the_ledger_and_the_cluster_tell_the_same(plane: ControlPlane, tmp_path: Path) -> None:
    async with tenants(plane, tmp_path) as here:
        quota: Object = {"on-demand": {"pods": 10, "cpu": 40}, "reserved": {}}
        change = {"apiVersion": API_VERSION, "kind": "Project", "metadata": {"name": here.ads}}
        client = here.world.client
        before = await client.get(NOUNS["Project"], here.ads)
        await client.apply({**change, "spec": {**before["spec"], "quota": quota}}, NOUNS["Project"], manager=ENGINE)
        more = HELLO.replace("name: hello", "name: more").replace("8080", "8080, replicas: 3")
        for document in (HELLO, more):
            assert (await here.deploy("dan", here.ads, document)).status == 201
        await holds(here.world.database, here.ads, 6)
        told = msgspec.convert((await here.ask("vera", "GET", f"/projects/{here.ads}")).body, Tenancy)
        assert told.members == {"owner": ["olga"], "deployer": ["dan"], "viewer": ["vera"]}
        assert (told.kinds, [each.name for each in told.waiting]) == ({"PinterestService": 2}, ["hello", "more"])
        used = {(use.tier, each.thing): (each.used, each.limit, each.left) for use in told.quota for each in use.held}
        assert used["on-demand", "pods"] == ("6", "10", "4")
        assert [use.tier for use in told.quota] == ["reserved", "on-demand"]
        assert [each.name for use in told.quota for each in use.held if each.thing == "pods" for each in each.most] == [
            "more", "hello",
        ]  # fmt: skip
        assert told.on_their_way == []
        assert await ClusterPort(client).project(here.ads) == told
        assert here.ads in {each.project for each in await ClusterPort(client).projects()}


async def test_a_name_that_is_none_reaches_nothing(plane: ControlPlane, tmp_path: Path) -> None:
    async with tenants(plane, tmp_path) as here:
        for said in ("..%2Fsecrets", "Ads", "a" * 64, "%00"):
            told = await here.ask("root", "GET", f"/projects/{said}")
            assert (told.status, [each["reason"] for each in told.body["errors"]]) == (404, ["ProjectUnknown"]), said


async def test_what_work_must_keep_is_told_with_its_slips(plane: ControlPlane, tmp_path: Path) -> None:
    """Nothing of it stands there that `pin plan` would have let through: somebody wrote it with kubectl."""
    wrong = {
        "name": "two",
        "rule": "workload.spec.replcias >= 2",
        "message": "two copies",
        "kinds": ["PinterestService"],
    }
    small = Policy(name="small", rule="requests.cpu < 8", message="8 at most")
    async with tenants(plane, tmp_path, {"policies": [wrong]}, (small,)) as here:
        told = msgspec.convert((await here.ask("vera", "GET", f"/projects/{here.ads}")).body, Tenancy)
        assert [(each.name, each.of_platform, each.message) for each in told.policies] == [
            ("small", True, "8 at most"), ("two", False, "two copies"),
        ]  # fmt: skip
        slip = "at character 15 of the rule: workload.spec of a PinterestService has no field 'replcias'"
        assert [each.slips for each in told.policies] == [[], [f"{slip}; did you mean replicas?"]]
        # A kubeconfig knows the project's alone.
        assert (await ClusterPort(here.world.client).project(here.ads)).policies == told.policies[1:]


async def test_what_was_accepted_and_is_not_there_yet_is_told(
    plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again, go = asyncio.Event(), asyncio.Event()
    deliver, tried = Kubernetes.deliver, list[str]()

    async def late(self: Kubernetes, submission: str, place: Place, order: Order) -> Delivered:
        tried.append(submission)
        if len(tried) == 1:
            raise Away(Problem(CLUSTER_UNREACHABLE, "the cluster is at lunch"))
        again.set()
        await go.wait()
        return await deliver(self, submission, place, order)

    monkeypatch.setattr(Kubernetes, "deliver", late)
    async with tenants(plane, tmp_path) as here:
        path, headers = f"/v1/projects/{here.ads}/submissions", {"Prefer": "respond-async"}
        sent = {"data": HELLO.encode(), "headers": {**headers, "Authorization": "Bearer dan"}}
        async with asyncio.timeout(60), here.world.http.post(path, **sent) as answer:
            assert answer.status == 202
            await again.wait()
        told = msgspec.convert((await here.ask("vera", "GET", f"/projects/{here.ads}")).body, Tenancy)
        assert [(each.name, each.verb, each.who, each.attempts, each.waits) for each in told.on_their_way] == [
            ("hello", "deploy", "dan", 1, "the cluster is at lunch")
        ]
        other = msgspec.convert((await here.ask("otto", "GET", f"/projects/{here.search}")).body, Tenancy)
        assert other.on_their_way == []
        go.set()
        # In its turn after the one before.
        assert (await here.deploy("dan", here.ads)).status == 201
        told = msgspec.convert((await here.ask("vera", "GET", f"/projects/{here.ads}")).body, Tenancy)
        assert told.on_their_way == []

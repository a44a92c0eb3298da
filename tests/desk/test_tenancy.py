"""The project view: by the desk from the ledger, and by the CLI from the cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from control_plane import ControlPlane
from desk_fixtures import wait_ledger_holds
from pincompute.api.names import API_VERSION, ENGINE
from pincompute.api.policy import Policy
from pincompute.api.project_view import ProjectSummary, ProjectView
from pincompute.base.problem import Problem
from pincompute.base.reasons import CLUSTER_UNREACHABLE
from pincompute.cli.cluster_client import ClusterClient
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.resource import Object
from pincompute.planning.footprint import WorkloadKey
from pincompute.platforms.kubernetes.platform import KubernetesPlatform
from pincompute.platforms.protocol import Delivery, PlatformCommand, PlatformUnavailable
from tenant_projects import tenant_projects
from workloads import HELLO

pytestmark = pytest.mark.cluster


async def test_project_list_shows_own_projects(plane: ControlPlane, tmp_path: Path) -> None:
    async with tenant_projects(plane, tmp_path) as here:
        for who, theirs in (("vera", {here.ads}), ("otto", {here.search}), ("eve", set[str]()), ("dan", {here.ads})):
            told = await here.request(who, "GET", "/projects")
            assert {each["project"] for each in told.body} == theirs
        everything = msgspec.convert((await here.request("root", "GET", "/projects")).body, list[ProjectSummary])
        assert {here.ads, here.search} <= {each.project for each in everything}
        (mine,) = msgspec.convert((await here.request("vera", "GET", "/projects")).body, list[ProjectSummary])
        assert (mine.owner, mine.role) == (f"team-{here.ads}", "viewer")


async def test_project_view_is_the_same_by_desk_and_by_kubeconfig(plane: ControlPlane, tmp_path: Path) -> None:
    async with tenant_projects(plane, tmp_path) as here:
        quota: Object = {"on-demand": {"pods": 10, "cpu": 40}, "reserved": {}}
        change = {"apiVersion": API_VERSION, "kind": "Project", "metadata": {"name": here.ads}}
        client = here.world.client
        before = await client.get(CUSTOM_RESOURCES["Project"], here.ads)
        await client.apply(
            {**change, "spec": {**before["spec"], "quota": quota}}, CUSTOM_RESOURCES["Project"], manager=ENGINE
        )
        more = HELLO.replace("name: hello", "name: more").replace("8080", "8080, replicas: 3")
        for document in (HELLO, more):
            assert (await here.deploy("dan", here.ads, document)).status == 201
        await wait_ledger_holds(here.world.database, here.ads, 6)
        told = msgspec.convert((await here.request("vera", "GET", f"/projects/{here.ads}")).body, ProjectView)
        assert told.members == {"owner": ["olga"], "deployer": ["dan"], "viewer": ["vera"]}
        assert (told.workload_counts, [each.name for each in told.unfinished]) == (
            {"PinterestService": 2},
            ["hello", "more"],
        )
        used = {
            (use.tier, each.resource): (each.used, each.limit, each.remaining)
            for use in told.quota
            for each in use.usages
        }
        assert used["on-demand", "pods"] == ("6", "10", "4")
        assert [use.tier for use in told.quota] == ["reserved", "on-demand"]
        (pods,) = [each for use in told.quota for each in use.usages if each.resource == "pods"]
        assert [each.name for each in pods.largest_consumers] == ["more", "hello"]
        assert told.pending_submissions == []
        assert await ClusterClient(client).get_project(here.ads) == told
        assert here.ads in {each.project for each in await ClusterClient(client).list_projects()}


async def test_invalid_project_name_is_unknown(plane: ControlPlane, tmp_path: Path) -> None:
    async with tenant_projects(plane, tmp_path) as here:
        for said in ("..%2Fsecrets", "Ads", "a" * 64, "%00"):
            told = await here.request("root", "GET", f"/projects/{said}")
            assert (told.status, [each["reason"] for each in told.body["errors"]]) == (404, ["ProjectUnknown"]), said


async def test_project_view_reports_errors_in_policies(plane: ControlPlane, tmp_path: Path) -> None:
    """The policies are invalid, as they were written with kubectl, past the validation of `pin plan`."""
    wrong = {
        "name": "two",
        "rule": "workload.spec.replcias >= 2",
        "message": "two replicas",
        "kinds": ["PinterestService"],
    }
    small = Policy(name="small", rule="requests.cpu < 8", message="8 at most")
    async with tenant_projects(plane, tmp_path, {"policies": [wrong]}, (small,)) as here:
        told = msgspec.convert((await here.request("vera", "GET", f"/projects/{here.ads}")).body, ProjectView)
        assert [(each.name, each.platform_wide, each.message) for each in told.policies] == [
            ("small", True, "8 at most"), ("two", False, "two replicas"),
        ]  # fmt: skip
        slip = "at character 15 of the rule: workload.spec of PinterestService has no field 'replcias'"
        assert [each.errors for each in told.policies] == [[], [f"{slip}; did you mean replicas?"]]
        # Without a desk, only the project's own policies are known.
        assert (await ClusterClient(here.world.client).get_project(here.ads)).policies == told.policies[1:]


async def test_project_view_lists_undelivered_submissions(
    plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again, go = asyncio.Event(), asyncio.Event()
    deliver, tried = KubernetesPlatform.deliver, list[str]()

    async def late(self: KubernetesPlatform, submission: str, place: WorkloadKey, order: PlatformCommand) -> Delivery:
        tried.append(submission)
        if len(tried) == 1:
            raise PlatformUnavailable(Problem(CLUSTER_UNREACHABLE, "the cluster is at lunch"))
        again.set()
        await go.wait()
        return await deliver(self, submission, place, order)

    monkeypatch.setattr(KubernetesPlatform, "deliver", late)
    async with tenant_projects(plane, tmp_path) as here:
        path, headers = f"/v1/projects/{here.ads}/submissions", {"Prefer": "respond-async"}
        sent = {"data": HELLO.encode(), "headers": {**headers, "Authorization": "Bearer dan"}}
        async with asyncio.timeout(60), here.world.http.post(path, **sent) as answer:
            assert answer.status == 202
            await again.wait()
        told = msgspec.convert((await here.request("vera", "GET", f"/projects/{here.ads}")).body, ProjectView)
        assert [
            (each.name, each.verb, each.caller, each.attempts, each.last_delivery_error)
            for each in told.pending_submissions
        ] == [("hello", "deploy", "dan", 1, "the cluster is at lunch")]
        other = msgspec.convert((await here.request("otto", "GET", f"/projects/{here.search}")).body, ProjectView)
        assert other.pending_submissions == []
        go.set()
        # Delivered after the one before it.
        assert (await here.deploy("dan", here.ads)).status == 201
        told = msgspec.convert((await here.request("vera", "GET", f"/projects/{here.ads}")).body, ProjectView)
        assert told.pending_submissions == []

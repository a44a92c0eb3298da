"""The OWASP API ten, those of them that are about who asks: each tried as somebody would who means harm."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from pathlib import Path

import pytest
import yaml
from aiohttp.test_utils import TestServer

from control_plane import ControlPlane
from pincompute.api.documents import MAX_BYTES
from pincompute.api.names import ENGINE
from pincompute.controller.resources import NOUNS
from pincompute.submission import record
from pincompute.submission.record import State
from pincompute.submission.turns import Limits
from tenants import Tenants, nowhere, tenants
from workloads import HELLO

pytestmark = pytest.mark.cluster

OPEN = ("/healthz", "/v1/sign-in", "/v1/openapi.json")
"""What the desk tells to anybody."""
SCALE = {"change": "scale", "copies": 2}
PROJECT = """\
apiVersion: pinterest.com/v1
kind: Project
metadata: {{name: {name}}}
spec: {{owner: me, quota: {{on-demand: {{}}}}}}
"""
RUNTIME = "apiVersion: pinterest.com/v1\nkind: Runtime\nmetadata: {name: '7'}\nspec: {parts: [logs-1]}\n"
DAEMON = HELLO.replace("PinterestService", "PinterestDaemon").replace("name: hello", "name: everywhere")


def routes(here: Tenants) -> list[tuple[str, str]]:
    """Every way to ask there is, from the application itself: one that is added is tried, too."""
    server = here.world.http.server
    assert isinstance(server, TestServer)
    found = server.app.router.routes()
    return [(each.method, each.resource.canonical) for each in found if each.method != "HEAD" and each.resource]


def path_of(route: str, project: str) -> str:
    named = {"project": project, "name": "hello", "id": "submission-1", "version": "1", "number": "1", "port": "80"}
    return re.sub(r"\{(\w+)\}", lambda found: named[found[1]], route).removeprefix("/v1")


def body_of(method: str, route: str) -> object:
    return SCALE if route.endswith("/changes") and method == "POST" else HELLO


async def test_api1_broken_object_level_authorization(plane: ControlPlane, tmp_path: Path) -> None:
    """Whoever has no role in a project learns nothing of it by any way, not even whether it is there."""
    async with tenants(plane, tmp_path) as here:
        assert (await here.deploy("dan", here.ads)).status == 201
        of_projects = [(method, route) for method, route in routes(here) if "{project}" in route]
        assert len(of_projects) > 10
        missing = nowhere()
        for method, route in of_projects:
            for who in ("otto", "eve"):
                told = [
                    await here.ask(who, method, path_of(route, project), body_of(method, route))
                    for project in (here.ads, missing)
                ]
                assert [each.status for each in told] == [404, 404], route
                there, gone = (str(each.body["errors"][0]) for each in told)
                assert there.replace(here.ads, "P") == gone.replace(missing, "P"), route
        assert await here.world.outcomes("hello", here.ads) == [("submission-1", State.DELIVERED)]


async def test_api1_a_document_or_an_id_of_another_project(plane: ControlPlane, tmp_path: Path) -> None:
    """It does not matter by whose address somebody asks: what counts is what they reach for."""
    async with tenants(plane, tmp_path) as here:
        document = HELLO.replace("name: hello", f"name: hello, project: {here.search}")
        assert (await here.deploy("dan", here.ads, document)).reason == "ProjectUnknown"
        assert (await here.ask("vera", "POST", f"/projects/{here.ads}/plans", document)).reason == "ProjectUnknown"
        kept = await here.deploy("otto", here.search)
        assert kept.status == 201
        for project, status in ((here.search, 404), (here.ads, 404)):
            asked = await here.ask("vera", "GET", f"/projects/{project}/submissions/submission-1")
            assert asked.status == status
        # What is there shows in what a plan says of it.
        for name in (here.search, nowhere()):
            asked = await here.ask("vera", "POST", f"/projects/{here.ads}/plans", PROJECT.format(name=name))
            assert asked.reason == "ProjectUnknown"
        assert (await here.ask("vera", "POST", f"/projects/{here.ads}/plans", RUNTIME)).reason == "NotAllowed"
        assert (await here.ask("vera", "POST", f"/projects/{here.ads}/plans", HELLO)).status == 200


async def test_api2_broken_authentication(plane: ControlPlane, tmp_path: Path) -> None:
    """Who does not say who they are is told whether the desk is well, where to sign in, and nothing else."""
    async with tenants(plane, tmp_path) as here:
        for method, route in routes(here):
            if route in OPEN:
                continue
            asked = await here.ask("", method, path_of(route, here.ads), body_of(method, route))
            assert (asked.status, asked.reason) == (401, "NotSignedIn"), route
        assert (await here.ask("", "GET", "/nothing/here")).status == 401
        # What is no token at all is nobody's.
        for said in ("Bearer ", "Basic cm9vdDpyb290", "Bearer r\u00f6\u00f6t", f"Bearer {'x' * 7_000}" * 3, "root"):
            async with here.world.http.get("/v1/whoami", headers={"Authorization": said}) as answer:
                assert answer.status in (400, 401), said


async def test_api3_broken_object_property_level_authorization(plane: ControlPlane, tmp_path: Path) -> None:
    """Nobody says in a document who they are, or what the desk alone may say."""
    async with tenants(plane, tmp_path) as here:
        forged = HELLO.replace("name: hello", "name: hello, annotations: {pinterest.com/submission: submission-99}")
        await here.deploy("dan", here.ads, forged)
        written = await here.world.client.get(NOUNS["PinterestService"], "hello", here.ads)
        assert written["metadata"]["annotations"]["pinterest.com/submission"] == "submission-1"
        said = HELLO.replace("port: 8080", "port: 8080, build: '1'").replace("name: hello", "name: other")
        assert (await here.deploy("dan", here.ads, said)).status == 403
        (kept,) = await here.world.database.do(partial(record.of_workload, project=here.ads, name="hello"))
        assert kept.who == "dan"


async def test_api4_unrestricted_resource_consumption(plane: ControlPlane, tmp_path: Path) -> None:
    """What takes much is refused before it does, and whoever asks too often waits; the others do not."""
    async with tenants(plane, tmp_path) as here:
        for sent in (
            HELLO + "x" * (10 << 20),
            "[" * MAX_BYTES,
            "a: &a [x]\nb: [" + "*a, " * 1_000 + "]",
            "- x\n" * 250_000,
        ):
            for way in ("submissions", "sets", "plans"):
                assert (await here.ask("dan", "POST", f"/projects/{here.ads}/{way}", sent)).reason == "DocumentInvalid"
        assert (await here.deploy("dan", here.ads)).status == 201
    (tmp_path / "slow").mkdir()
    async with tenants(plane, tmp_path / "slow", limits=Limits(rate=0.001)) as here:
        workloads = f"/projects/{here.ads}/workloads"
        assert (await here.ask("dan", "GET", workloads)).status == 200
        for method, route in routes(here):
            if route in OPEN:
                continue
            asked = await here.ask("dan", method, path_of(route, here.ads), body_of(method, route))
            assert (asked.status, asked.reason) == (429, "TooManyRequests"), route
        assert (await here.ask("vera", "GET", workloads)).status == 200
        async with here.world.http.get("/healthz") as answer:
            assert answer.status == 200


async def test_api5_broken_function_level_authorization(plane: ControlPlane, tmp_path: Path) -> None:
    """Who may look changes nothing, who deploys brings no daemons in, and only administrators touch the fleet."""
    async with tenants(plane, tmp_path) as here:
        assert (await here.deploy("dan", here.ads)).status == 201
        for method, route in routes(here):
            asked = await here.ask("vera", method, path_of(route, here.ads), body_of(method, route))
            if method != "GET" and not route.endswith("/plans"):
                assert (asked.status, asked.reason) == (403, "NotAllowed"), route
            if "{project}" not in route and route not in (*OPEN, "/v1/whoami", "/v1/projects"):
                told = await here.ask("olga", method, path_of(route, here.ads), body_of(method, route))
                assert (asked.reason, told.reason) == ("NotAllowed", "NotAllowed"), route
        refused = await here.deploy("vera", here.ads)
        assert refused.body["errors"][0]["next"] == f"ask team-{here.ads} (#{here.ads}), whose project it is"
        for who in ("dan", "olga"):
            assert "daemons run on every node" in (await here.deploy(who, here.ads, DAEMON)).body["errors"][0]["detail"]
        assert (await here.ask("root", "GET", "/fleet")).status == 200
        there = yaml.safe_load(DAEMON)
        there["metadata"]["namespace"] = here.ads
        await here.world.client.apply(there, NOUNS["PinterestDaemon"], manager=ENGINE)
        whole = f"/projects/{here.ads}/workloads/everywhere"
        for who in ("dan", "olga"):
            assert (await here.ask(who, "GET", whole)).status == 200
            assert (await here.ask(who, "DELETE", whole)).reason == "NotAllowed"
            assert (await here.ask(who, "POST", f"{whole}/changes", {"change": "restart"})).reason == "NotAllowed"
        assert [state for _, state in await here.world.outcomes("everywhere", here.ads)] == [State.REFUSED] * 4
        # They may, and it is the project that has no room for it.
        assert (await here.deploy("root", here.ads, DAEMON)).reason == "TierClosed"
        assert [state for _, state in await here.world.outcomes("hello", here.ads)] == [State.DELIVERED]


async def test_api6_unrestricted_access_to_sensitive_business_flows(plane: ControlPlane, tmp_path: Path) -> None:
    """Deploying over and over, as a program would: it goes on as often as it may, and what was sent away is nowhere."""
    async with tenants(plane, tmp_path, limits=Limits(rate=1)) as here:
        told = await asyncio.gather(
            *(here.deploy("dan", here.ads, HELLO.replace("name: hello", f"name: h-{number}")) for number in range(40))
        )
        away = [number for number, each in enumerate(told) if each.status == 429]
        assert len(away) > 20
        for number in away:
            assert told[number].reason == "TooManyRequests"
            assert await here.world.outcomes(f"h-{number}", here.ads) == []
        there = (await here.ask("vera", "GET", f"/projects/{here.ads}/workloads")).body
        assert sorted(each["name"] for each in there) == sorted(
            f"h-{number}" for number, each in enumerate(told) if each.status == 201
        )


async def test_api8_security_misconfiguration(plane: ControlPlane, tmp_path: Path) -> None:
    """A way to ask that says nothing of what it needs is for administrators alone, and a request that fails tells
    nobody why."""
    async with tenants(plane, tmp_path) as here:
        for who, status in (("", 401), ("olga", 404), ("root", 404)):
            assert (await here.ask(who, "GET", "/debug")).status == status


async def test_who_somebody_is_and_where_they_are_what(plane: ControlPlane, tmp_path: Path) -> None:
    async with tenants(plane, tmp_path) as here:
        told = (await here.ask("vera", "GET", "/whoami")).body
        assert (told["name"], told["administers"]) == ("vera", False)
        assert [(each["project"], each["role"]) for each in told["projects"]] == [(here.ads, "viewer")]
        assert (await here.ask("eve", "GET", "/whoami")).body["projects"] == []
        workloads, project = f"/projects/{here.ads}/workloads", NOUNS["Project"]
        assert (await here.ask("eve", "GET", workloads)).status == 404
        # Whoever has just been named may come in at once.
        members = {"spec": {"members": {"viewer": {"people": ["eve", "vera"]}}}}
        await here.world.client.patch(project, here.ads, "", members, style="merge", manager=ENGINE)
        assert (await here.ask("eve", "GET", workloads)).status == 200


async def test_a_key_is_of_whoever_sent_it(plane: ControlPlane, tmp_path: Path) -> None:
    """Nobody is answered with what somebody else has asked."""
    async with tenants(plane, tmp_path) as here:
        path, key = f"/v1/projects/{here.ads}/submissions", {"Idempotency-Key": "the same"}
        for number, who in ((1, "dan"), (2, "olga"), (1, "dan")):
            async with here.world.http.post(
                path, data=HELLO, headers={**key, "Authorization": f"Bearer {who}"}
            ) as answer:
                assert answer.headers["Submission"] == f"submission-{number}"

"""The OWASP API ten, those of them that are about who asks: each tried as somebody would who means harm."""

from __future__ import annotations

import asyncio
import re
from base64 import urlsafe_b64encode
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
import pytest
import yaml
from aiohttp import ClientTimeout, web
from aiohttp.test_utils import TestServer

from books import kept_of
from control_plane import ControlPlane
from pincompute.api.documents import MAX_BYTES
from pincompute.api.names import ENGINE
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Refused
from pincompute.controller.resources import NOUNS
from pincompute.kube import artifacts
from pincompute.kube.artifacts import open_store
from pincompute.submission.builds import Builds
from pincompute.submission.credentials import Credentials
from pincompute.submission.people import keys
from pincompute.submission.people.door import Shown
from pincompute.submission.people.keys import Keys
from pincompute.submission.people.openid import OpenId, OpenIdSettings
from pincompute.submission.record import State
from pincompute.submission.repository import Repositories
from pincompute.submission.turns import Limits
from tenants import Tenants, nowhere, tenants
from workloads import HELLO

pytestmark = pytest.mark.cluster

OPEN = ("/healthz", "/v1/sign-in", "/v1/openapi.json", "/v1/")
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


Answering = Callable[[web.Request], Any]


class Elsewhere(NamedTuple):
    where: str
    asked: list[str]


@asynccontextmanager
async def elsewhere(answering: Answering) -> AsyncGenerator[Elsewhere]:
    """Somebody's server, and what it was asked."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        said = answering(request)
        found: web.StreamResponse = await said if isinstance(said, Awaitable) else said
        return found

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as server:
        yield Elsewhere(str(server.make_url("/")).rstrip("/"), asked)


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
        (kept,) = await here.world.database.do(partial(kept_of, project=here.ads, name="hello"))
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


async def test_api7_server_side_request_forgery(plane: ControlPlane, tmp_path: Path) -> None:
    """Whatever address somebody says, the desk does not go there: stores, repositories and whoever signs people in
    are named by those who run it, and by the project."""
    async with elsewhere(lambda _: web.Response(text="{}")) as other, tenants(plane, tmp_path) as here:
        there = quote(other.where, safe="")
        documents = [
            HELLO.replace("hello:dev", f"{other.where.removeprefix('http://')}/hello:1"),
            HELLO.replace("name: hello", f"name: hello, annotations: {{url: '{other.where}'}}"),
            PROJECT.format(name=here.ads).replace("owner: me", f"owner: me, landing: {{repository: '{other.where}'}}"),
        ]
        for document in documents:
            for path in ("plans", "submissions", "sets"):
                await here.ask("olga", "POST", f"/projects/{here.ads}/{path}", document)
        for method, route in routes(here):
            for word in (there, other.where):
                path = re.sub(r"\{(?!project)\w+\}", lambda _, word=word: word, route).replace("{project}", here.ads)
                asked = f"{path}?url={word}&copy={word}&container={word}&uid={word}&breakGlass={word}"
                await here.ask("olga", method, asked.removeprefix("/v1"), other.where)
        said = {"Host": other.where.removeprefix("http://"), "X-Forwarded-Host": other.where, "Referer": other.where}
        async with here.world.http.get("/v1/whoami", headers={**said, "Authorization": "Bearer olga"}) as answer:
            assert answer.status == 200
        # A token says who is to judge it and by which keys: that is compared, and not followed.
        clock = SystemClock()
        judge = OpenId(OpenIdSettings("http://127.0.0.1:9", "pin"), clock)
        for issuer in (other.where, "http://127.0.0.1:9"):
            with suppress(Refused):
                header = {"alg": "RS256", "kid": "1", "jku": other.where, "x5u": other.where}
                parts = (header, {"iss": issuer, "aud": "pin"}, {"none": 0})
                token = ".".join(urlsafe_b64encode(msgspec.json.encode(each)).decode().rstrip("=") for each in parts)
                assert await judge.identify(Shown(token)) is None
        assert other.asked == []


async def test_api8_security_misconfiguration(plane: ControlPlane, tmp_path: Path) -> None:
    """A way to ask that says nothing of what it needs is for administrators alone, and a request that fails tells
    nobody why."""
    async with tenants(plane, tmp_path) as here:
        for who, status in (("", 401), ("olga", 404), ("root", 404)):
            assert (await here.ask(who, "GET", "/debug")).status == status


async def test_api9_improper_inventory_management(plane: ControlPlane, tmp_path: Path) -> None:
    """What can be asked is what is described, in one version, and nothing else answers."""
    async with tenants(plane, tmp_path) as here:
        described = (await here.ask("", "GET", "/openapi.json")).body["paths"]
        assert {(method.upper(), path) for path, ways in described.items() for method in ways} == set(routes(here))
        assert all(path.startswith("/v1/") for path in described if path != "/healthz")
        for path in ("/", "/v0/whoami", "/v2/whoami", "/api/v1/whoami", "/whoami", "/v1/whoami/", "/metrics", "/.env"):
            async with here.world.http.get(path, headers={"Authorization": "Bearer root"}) as answer:
                assert (answer.status, answer.content_type) == (404, "application/problem+json"), path


RUBBISH: dict[str, Answering] = {
    "list": lambda _: web.json_response([1, 2]),
    "fields": lambda _: web.json_response({"children": [{"folder": True}], "checksums": 7, "keys": 7}),
    "page": lambda _: web.Response(text="<html>Please log in</html>", content_type="text/html"),
    "nested": lambda _: web.Response(body=b'{"children":' + b"[" * 200_000, content_type="application/json"),
    "bytes": lambda _: web.Response(body=b"\xff\x00" * 50),
    "failure": lambda _: web.Response(status=500, text="x" * 100_000),
    "too much": lambda _: web.Response(body=b"[" + b" " * (8 << 20)),
    "checksum": lambda _: web.Response(text="{}", headers={"X-Checksum-Sha256": "0" * 64}),
}


@pytest.mark.parametrize("answer", RUBBISH.values(), ids=RUBBISH)
async def test_api10_unsafe_consumption_of_apis(answer: Answering, tmp_path: Path) -> None:
    """A store, or whoever signs people in, that answers rubbish, or too much, is told of in words."""
    async with elsewhere(answer) as other, open_store(f"{other.where}/generic-local") as store:
        builds = Builds(store, Repositories(tmp_path, Credentials()))
        with pytest.raises(Refused) as told:
            await builds.find("ads", "hello", "1")
        assert told.value.problems[0].reason.code in {"StoreFailed", "BuildAltered"}
        with suppress(Refused):
            assert await store.names("builds") == []
        with pytest.raises(Refused) as told:
            await Keys(other.where, SystemClock()).having("1")
        assert told.value.problems[0].reason.code == "SignInAway"


async def test_api10_nobody_is_led_elsewhere_and_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    async def dribbling(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with suppress(ConnectionError):
            while True:
                await response.write(b" ")
                await asyncio.sleep(0.01)
        return response

    monkeypatch.setattr(artifacts, "_TIMEOUT", ClientTimeout(total=0.3))
    monkeypatch.setattr(keys, "PATIENCE", ClientTimeout(total=0.3))
    async with elsewhere(lambda _: web.Response(text="{}")) as other:
        redirected = elsewhere(lambda request: web.HTTPTemporaryRedirect(f"{other.where}{request.path}"))
        for way in (redirected, elsewhere(dribbling)):
            async with way as unsafe, open_store(f"{unsafe.where}/generic-local", lambda: "secret") as store:
                for asked in (store.get("a"), store.names("a"), Keys(unsafe.where, SystemClock()).having("1")):
                    with pytest.raises(Refused) as told:
                        await asked
                    assert told.value.problems[0].reason.code in {"StoreFailed", "SignInAway"}
                assert unsafe.asked
        assert other.asked == []


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

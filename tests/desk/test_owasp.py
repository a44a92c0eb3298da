"""The OWASP API Security Top 10, each tried as an attacker would."""

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

from control_plane import ControlPlane
from pincompute.api.documents import MAX_FILE_BYTES
from pincompute.api.names import ENGINE
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Refused
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.desk.authn import signing_keys
from pincompute.desk.authn.authenticator import Credentials
from pincompute.desk.authn.openid import OpenIdAuth, OpenIdSettings
from pincompute.desk.authn.signing_keys import SigningKeys
from pincompute.desk.builds import BuildVerifier
from pincompute.desk.http.server import FORMER_PATHS
from pincompute.desk.limits.middleware import Limits
from pincompute.desk.outbound_credentials import OutboundCredentials
from pincompute.desk.repository import RepositoryMirrors
from pincompute.desk.store.record import SubmissionState
from pincompute.platforms import artifact_store
from pincompute.platforms.artifact_store import open_artifact_store
from record_fixtures import submissions_of
from tenant_projects import TenantProjects, tenant_projects, unknown_project
from workloads import HELLO

pytestmark = pytest.mark.cluster

PAGES = ("/", "/ui", "/ui/{page}", "/ui/assets/{digest}/{file}")
OPEN = ("/healthz", "/readyz", "/v1/sign-in", "/v1/openapi.json", "/v1/", *PAGES)
"""Public paths."""
SIGN_IN = (("POST", "/session"), ("GET", "/session/openid"), ("GET", "/session/openid/callback"))
"""Public, as they bring the credentials of a browser."""
OWN_SESSION = ("/session", "/session/link", "/session/openid", "/session/openid/callback", "/v1/sessions")
"""Every caller has sessions."""
OF_OWN_PROJECTS = ("/v1/whoami", "/v1/projects", "/v1/workloads", "/v1/replicas", "/v1/changes")
"""Routes without a project, which answer with what the caller may view."""
SCALE = {"change": "scale", "replicas": 2}
PROJECT = """\
apiVersion: pinterest.com/v1
kind: Project
metadata: {{name: {name}}}
spec: {{owner: me, quota: {{on-demand: {{}}}}}}
"""
RUNTIME = "apiVersion: pinterest.com/v1\nkind: Runtime\nmetadata: {name: '7'}\nspec: {parts: [logs-1]}\n"
DAEMON = HELLO.replace("PinterestService", "PinterestDaemon").replace("name: hello", "name: everywhere")


def routes(here: TenantProjects) -> list[tuple[str, str]]:
    """All routes of the application itself, so that a new one is tested, too."""
    server = here.world.http.server
    assert isinstance(server, TestServer)
    found = server.app.router.routes()
    return [(each.method, each.resource.canonical) for each in found if each.method != "HEAD" and each.resource]


def path_of(route: str, project: str) -> str:
    named = {"project": project, "name": "hello", "id": "submission-1", "version": "1", "number": "1", "port": "80"}
    named |= {"part": "logs-1", "secret": "db-password", "secretVersion": "1"}
    named |= {"bundle": "flags", "bundle_version": "1", "digest": "0" * 64, "page": "workloads", "file": "main.js"}
    return re.sub(r"\{(\w+)\}", lambda found: named[found[1]], route).removeprefix("/v1")


def body_of(method: str, route: str) -> object:
    return SCALE if route.endswith("/changes") and method == "POST" else HELLO


Answering = Callable[[web.Request], Any]


class Elsewhere(NamedTuple):
    where: str
    asked: list[str]


@asynccontextmanager
async def elsewhere(answering: Answering) -> AsyncGenerator[Elsewhere]:
    """A server that records its requests."""
    asked: list[str] = []

    async def redirect_everything(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        said = answering(request)
        found: web.StreamResponse = await said if isinstance(said, Awaitable) else said
        return found

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", redirect_everything)
    async with TestServer(app) as server:
        yield Elsewhere(str(server.make_url("/")).rstrip("/"), asked)


async def test_api1_broken_object_level_authorization(plane: ControlPlane, tmp_path: Path) -> None:
    """A caller without a role in a project learns nothing of it by any route, not even whether it exists."""
    async with tenant_projects(plane, tmp_path) as here:
        assert (await here.deploy("dan", here.ads)).status == 201
        of_projects = [(method, route) for method, route in routes(here) if "{project}" in route]
        assert len(of_projects) > 10
        missing = unknown_project()
        for method, route in of_projects:
            for who in ("otto", "eve"):
                told = [
                    await here.request(who, method, path_of(route, project), body_of(method, route))
                    for project in (here.ads, missing)
                ]
                assert [each.status for each in told] == [404, 404], route
                there, gone = (str(each.body["errors"][0]) for each in told)
                assert there.replace(here.ads, "P") == gone.replace(missing, "P"), route
        assert await here.world.outcomes("hello", here.ads) == [("submission-1", SubmissionState.DELIVERED)]


async def test_api1_a_document_or_an_id_of_another_project(plane: ControlPlane, tmp_path: Path) -> None:
    """The project in the document or of the id is authorized, not only the one in the URL."""
    async with tenant_projects(plane, tmp_path) as here:
        document = HELLO.replace("name: hello", f"name: hello, project: {here.search}")
        assert (await here.deploy("dan", here.ads, document)).reason == "ProjectUnknown"
        assert (await here.request("vera", "POST", f"/projects/{here.ads}/plans", document)).reason == "ProjectUnknown"
        kept = await here.deploy("otto", here.search)
        assert kept.status == 201
        for project, status in ((here.search, 404), (here.ads, 404)):
            asked = await here.request("vera", "GET", f"/projects/{project}/submissions/submission-1")
            assert asked.status == status
        # What is there shows in what a plan says of it.
        for name in (here.search, unknown_project()):
            asked = await here.request("vera", "POST", f"/projects/{here.ads}/plans", PROJECT.format(name=name))
            assert asked.reason == "ProjectUnknown"
        assert (await here.request("vera", "POST", f"/projects/{here.ads}/plans", RUNTIME)).reason == "Forbidden"
        assert (await here.request("vera", "POST", f"/projects/{here.ads}/plans", HELLO)).status == 200


async def test_api2_broken_authentication(plane: ControlPlane, tmp_path: Path) -> None:
    """Without credentials, only health, sign-in and the API description are readable."""
    async with tenant_projects(plane, tmp_path) as here:
        for method, route in routes(here):
            if route in OPEN or (method, route) in SIGN_IN:
                continue
            asked = await here.request("", method, path_of(route, here.ads), body_of(method, route))
            assert (asked.status, asked.reason) == (401, "Unauthenticated"), route
        assert (await here.request("", "GET", "/nothing/here")).status == 401
        # Malformed tokens are rejected.
        for said in ("Bearer ", "Basic cm9vdDpyb290", "Bearer r\u00f6\u00f6t", f"Bearer {'x' * 7_000}" * 3, "root"):
            async with here.world.http.get("/v1/whoami", headers={"Authorization": said}) as answer:
                assert answer.status in (400, 401), said


async def test_api3_broken_object_property_level_authorization(plane: ControlPlane, tmp_path: Path) -> None:
    """A document cannot set the caller, or fields that only the desk sets."""
    async with tenant_projects(plane, tmp_path) as here:
        forged = HELLO.replace("name: hello", "name: hello, annotations: {pinterest.com/submission: submission-99}")
        await here.deploy("dan", here.ads, forged)
        written = await here.world.client.get(CUSTOM_RESOURCES["PinterestService"], "hello", here.ads)
        assert written["metadata"]["annotations"]["pinterest.com/submission"] == "submission-1"
        said = HELLO.replace("port: 8080", "port: 8080, build: '1'").replace("name: hello", "name: other")
        assert (await here.deploy("dan", here.ads, said)).status == 403
        (kept,) = await here.world.database.transact(partial(submissions_of, project=here.ads, name="hello"))
        assert kept.caller == "dan"


async def test_api4_unrestricted_resource_consumption(plane: ControlPlane, tmp_path: Path) -> None:
    """Expensive requests are refused early, and a client over its rate does not affect others."""
    async with tenant_projects(plane, tmp_path) as here:
        for sent in (
            HELLO + "x" * (10 << 20),
            "[" * MAX_FILE_BYTES,
            "a: &a [x]\nb: [" + "*a, " * 1_000 + "]",
            "- x\n" * 250_000,
        ):
            for way in ("submissions", "sets", "plans"):
                assert (
                    await here.request("dan", "POST", f"/projects/{here.ads}/{way}", sent)
                ).reason == "DocumentInvalid"
        assert (await here.deploy("dan", here.ads)).status == 201
    (tmp_path / "slow").mkdir()
    async with tenant_projects(plane, tmp_path / "slow", limits=Limits(rate=0.001)) as here:
        workloads = f"/projects/{here.ads}/workloads"
        assert (await here.request("dan", "GET", workloads)).status == 200
        for method, route in routes(here):
            if route in OPEN or (method, route) in SIGN_IN:
                continue
            asked = await here.request("dan", method, path_of(route, here.ads), body_of(method, route))
            assert (asked.status, asked.reason) == (429, "TooManyRequests"), route
        assert (await here.request("vera", "GET", workloads)).status == 200
        async with here.world.http.get("/healthz") as answer:
            assert answer.status == 200


async def test_api5_broken_function_level_authorization(plane: ControlPlane, tmp_path: Path) -> None:
    """Viewers change nothing, deployers deploy no daemons, and only administrators change the fleet."""
    async with tenant_projects(plane, tmp_path) as here:
        assert (await here.deploy("dan", here.ads)).status == 201
        for method, route in routes(here):
            if route in OWN_SESSION:
                continue
            asked = await here.request("vera", method, path_of(route, here.ads), body_of(method, route))
            # Plans change nothing, and the secret store decides by its grants to which people it reveals a value.
            if method != "GET" and not route.endswith(("/plans", "/reveals")):
                assert (asked.status, asked.reason) == (403, "Forbidden"), route
            if "{project}" not in route and route not in (*OPEN, *OF_OWN_PROJECTS):
                told = await here.request("olga", method, path_of(route, here.ads), body_of(method, route))
                assert (asked.reason, told.reason) == ("Forbidden", "Forbidden"), route
        refused = await here.deploy("vera", here.ads)
        assert refused.body["errors"][0]["next"] == f"ask team-{here.ads} (#{here.ads}), the owner of the project"
        for who in ("dan", "olga"):
            assert "daemons run on every node" in (await here.deploy(who, here.ads, DAEMON)).body["errors"][0]["detail"]
        assert (await here.request("root", "GET", "/fleet")).status == 200
        there = yaml.safe_load(DAEMON)
        there["metadata"]["namespace"] = here.ads
        await here.world.client.apply(there, CUSTOM_RESOURCES["PinterestDaemon"], manager=ENGINE)
        whole = f"/projects/{here.ads}/workloads/everywhere"
        for who in ("dan", "olga"):
            assert (await here.request(who, "GET", whole)).status == 200
            assert (await here.request(who, "DELETE", whole)).reason == "Forbidden"
            assert (await here.request(who, "POST", f"{whole}/changes", {"change": "restart"})).reason == "Forbidden"
        assert [state for _, state in await here.world.outcomes("everywhere", here.ads)] == [
            SubmissionState.REFUSED
        ] * 4
        # Authorized, and refused by the quota.
        assert (await here.deploy("root", here.ads, DAEMON)).reason == "TierClosed"
        assert [state for _, state in await here.world.outcomes("hello", here.ads)] == [SubmissionState.DELIVERED]


async def test_api6_unrestricted_access_to_sensitive_business_flows(plane: ControlPlane, tmp_path: Path) -> None:
    """A program that deploys without pause is limited, and its rejected requests leave no trace."""
    async with tenant_projects(plane, tmp_path, limits=Limits(rate=1)) as here:
        told = await asyncio.gather(
            *(here.deploy("dan", here.ads, HELLO.replace("name: hello", f"name: h-{number}")) for number in range(40))
        )
        away = [number for number, each in enumerate(told) if each.status == 429]
        assert len(away) > 20
        for number in away:
            assert told[number].reason == "TooManyRequests"
            assert await here.world.outcomes(f"h-{number}", here.ads) == []
        there = (await here.request("vera", "GET", f"/projects/{here.ads}/workloads")).body
        assert sorted(each["name"] for each in there) == sorted(
            f"h-{number}" for number, each in enumerate(told) if each.status == 201
        )


async def test_api7_server_side_request_forgery(plane: ControlPlane, tmp_path: Path) -> None:
    """Requests cannot name servers: stores and providers are options of the desk, repositories are set in projects."""
    async with elsewhere(lambda _: web.Response(text="{}")) as other, tenant_projects(plane, tmp_path) as here:
        there = quote(other.where, safe="")
        documents = [
            HELLO.replace("hello:dev", f"{other.where.removeprefix('http://')}/hello:1"),
            HELLO.replace("name: hello", f"name: hello, annotations: {{url: '{other.where}'}}"),
            PROJECT.format(name=here.ads).replace("owner: me", f"owner: me, landing: {{repository: '{other.where}'}}"),
        ]
        for document in documents:
            for path in ("plans", "submissions", "sets"):
                await here.request("olga", "POST", f"/projects/{here.ads}/{path}", document)
        for method, route in routes(here):
            for word in (there, other.where):
                path = re.sub(r"\{(?!project)\w+\}", lambda _, word=word: word, route).replace("{project}", here.ads)
                asked = f"{path}?url={word}&copy={word}&container={word}&uid={word}&breakGlass={word}"
                await here.request("olga", method, asked.removeprefix("/v1"), other.where)
        said = {"Host": other.where.removeprefix("http://"), "X-Forwarded-Host": other.where, "Referer": other.where}
        async with here.world.http.get("/v1/whoami", headers={**said, "Authorization": "Bearer olga"}) as answer:
            assert answer.status == 200
        # The issuer and key id of a token are compared with the configuration; they are not fetched.
        clock = SystemClock()
        judge = OpenIdAuth(OpenIdSettings("http://127.0.0.1:9", "pin"), clock)
        for issuer in (other.where, "http://127.0.0.1:9"):
            with suppress(Refused):
                header = {"alg": "RS256", "kid": "1", "jku": other.where, "x5u": other.where}
                parts = (header, {"iss": issuer, "aud": "pin"}, {"none": 0})
                token = ".".join(urlsafe_b64encode(msgspec.json.encode(each)).decode().rstrip("=") for each in parts)
                assert await judge.authenticate(Credentials(token)) is None
        assert other.asked == []


async def test_api8_security_misconfiguration(plane: ControlPlane, tmp_path: Path) -> None:
    """A route without a declared permission is for administrators, and failures reveal no details."""
    async with tenant_projects(plane, tmp_path) as here:
        for who, status in (("", 401), ("olga", 404), ("root", 404)):
            assert (await here.request(who, "GET", "/debug")).status == status


async def test_api9_improper_inventory_management(plane: ControlPlane, tmp_path: Path) -> None:
    """All routes are documented, under one API version, except aliases of former paths, and pages."""
    async with tenant_projects(plane, tmp_path) as here:
        described = (await here.request("", "GET", "/openapi.json")).body["paths"]
        documented = {(method.upper(), path) for path, operations in described.items() for method in operations}
        assert documented | {("GET", path) for path in (*FORMER_PATHS, *PAGES)} == set(routes(here))
        assert all(path.startswith("/v1/") for path in described if path not in ("/healthz", "/readyz", *OWN_SESSION))
        for path in ("/v0/whoami", "/v2/whoami", "/api/v1/whoami", "/whoami", "/v1/whoami/", "/metrics", "/.env"):
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
    """An invalid or oversized response of the artifact store or the login provider is reported as a problem."""
    async with elsewhere(answer) as other, open_artifact_store(f"{other.where}/generic-local") as store:
        builds = BuildVerifier(store, RepositoryMirrors(tmp_path, OutboundCredentials()))
        with pytest.raises(Refused) as told:
            await builds.find_build("ads", "hello", "1")
        assert told.value.problems[0].reason.code in {"StoreFailed", "BuildAltered"}
        with suppress(Refused):
            assert await store.list_names("builds") == []
        with pytest.raises(Refused) as told:
            await SigningKeys(other.where, SystemClock()).keys_for("1")
        assert told.value.problems[0].reason.code == "SignInUnavailable"


async def test_api10_no_redirects_and_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    async def dribbling(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with suppress(ConnectionError):
            while True:
                await response.write(b" ")
                await asyncio.sleep(0.01)
        return response

    monkeypatch.setattr(artifact_store, "_TIMEOUT", ClientTimeout(total=0.3))
    monkeypatch.setattr(signing_keys, "FETCH_TIMEOUT", ClientTimeout(total=0.3))
    async with elsewhere(lambda _: web.Response(text="{}")) as other:
        redirected = elsewhere(lambda request: web.HTTPTemporaryRedirect(f"{other.where}{request.path}"))
        for way in (redirected, elsewhere(dribbling)):
            async with way as unsafe, open_artifact_store(f"{unsafe.where}/generic-local", lambda: "secret") as store:
                for asked in (
                    store.get("a"),
                    store.list_names("a"),
                    SigningKeys(unsafe.where, SystemClock()).keys_for("1"),
                ):
                    with pytest.raises(Refused) as told:
                        await asked
                    assert told.value.problems[0].reason.code in {"StoreFailed", "SignInUnavailable"}
                assert unsafe.asked
        assert other.asked == []


async def test_whoami_lists_roles(plane: ControlPlane, tmp_path: Path) -> None:
    async with tenant_projects(plane, tmp_path) as here:
        told = (await here.request("vera", "GET", "/whoami")).body
        assert (told["name"], told["is_admin"]) == ("vera", False)
        assert [(each["project"], each["role"]) for each in told["projects"]] == [(here.ads, "viewer")]
        assert (await here.request("eve", "GET", "/whoami")).body["projects"] == []
        workloads, project = f"/projects/{here.ads}/workloads", CUSTOM_RESOURCES["Project"]
        assert (await here.request("eve", "GET", workloads)).status == 404
        # A new member has access at once.
        members = {"spec": {"members": {"viewer": {"people": ["eve", "vera"]}}}}
        await here.world.client.patch(project, here.ads, "", members, style="merge", manager=ENGINE)
        assert (await here.request("eve", "GET", workloads)).status == 200


async def test_idempotency_keys_are_per_caller(plane: ControlPlane, tmp_path: Path) -> None:
    """A caller never gets the response to another caller's request."""
    async with tenant_projects(plane, tmp_path) as here:
        path, key = f"/v1/projects/{here.ads}/submissions", {"Idempotency-Key": "the same"}
        for number, who in ((1, "dan"), (2, "olga"), (1, "dan")):
            async with here.world.http.post(
                path, data=HELLO, headers={**key, "Authorization": f"Bearer {who}"}
            ) as answer:
                assert answer.headers["Submission"] == f"submission-{number}"

"""Insight attacked by tenants: what each may see is computed by a model of its own, and compared with every answer."""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec
import pytest
from aiohttp import ClientConnectorError, ClientError, ClientSession, TCPConnector

from control_plane import ControlPlane
from insight_process import running_insight
from insight_world import insight_workload, insight_world
from pincompute.api.names import DESK, ENGINE, INSIGHT
from pincompute.base.certificate_authority import Authority
from pincompute.base.http_process import mutual_tls_context, serve_http
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.desk.limits.fair_queue import QueueLimits
from pincompute.desk.limits.middleware import Limits
from pincompute.insight.process import is_desk
from pincompute.insight.server import build_app
from pincompute.kube.resource import Object
from tenant_projects import TenantProjects, tenant_projects
from workloads import HELLO, cluster_client

WAIT_S = 60.0
NAMES = ("hello", "web", "secret-launch")
CALLERS = ("root", "olga", "dan", "vera", "otto", "eve")


def visible_to(caller: str, here: TenantProjects) -> set[str]:
    """The model: written out, and independent of the code."""
    return {
        "root": {here.ads, here.search},
        "olga": {here.ads},
        "dan": {here.ads},
        "vera": {here.ads},
        "otto": {here.search},
        "eve": set[str](),
    }[caller]


class Attacked(NamedTuple):
    here: TenantProjects

    async def put_workloads(self) -> None:
        for owner, project in (("olga", self.here.ads), ("otto", self.here.search)):
            for name in NAMES:
                document = HELLO.replace("name: hello", f"name: {name}")
                assert (await self.here.deploy(owner, project, document)).status == 201
        async with asyncio.timeout(WAIT_S):
            for project in (self.here.ads, self.here.search):
                while (await self.read("root", "workloads", project=project))["total"] < len(NAMES):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)

    async def read(self, caller: str, collection: str, **query: str) -> Any:
        answer = await self.here.request(caller, "GET", f"/{collection}?{urlencode(query)}")
        assert answer.status == 200, answer.body
        return answer.body


@asynccontextmanager
async def attacked(plane: ControlPlane, folder: Path, limits: Limits | None = None) -> AsyncGenerator[Attacked]:
    async with (
        cluster_client(plane) as client,
        running_insight(client, folder) as insight,
        tenant_projects(plane, folder, insight=insight.client, limits=limits) as here,
    ):
        yield Attacked(here)


@pytest.mark.cluster
async def test_no_query_shows_what_the_caller_may_not_view(plane: ControlPlane, tmp_path: Path) -> None:
    chance = random.Random(7)
    async with attacked(plane, tmp_path) as scene:
        await scene.put_workloads()
        here = scene.here
        cursors = ["", *[(await scene.read("root", "workloads", limit="1", project=each))["next"] for each in
                         (here.ads, here.search)]]  # fmt: skip
        values: dict[str, tuple[str, ...]] = {
            "project": ("", here.ads, here.search, "default", "kube-system", f"{here.ads}.{here.search}"),
            "search": ("", "secret", here.search, here.ads[:4], "%", ".*"),
            "sort": ("name",),
            "cursor": tuple(cursors),
            "limit": ("1", "500"),
            "kind": ("", "PinterestService"),
        }
        for _ in range(120):
            query = {name: chance.choice(choices) for name, choices in values.items()}
            for caller in CALLERS:
                page = await scene.read(caller, chance.choice(("workloads", "replicas")), **query)
                allowed = visible_to(caller, here)
                shown = {each["project"] for each in page["items"]}
                assert caller == "root" or shown <= allowed, (caller, query)
                assert caller == "root" or page["total"] <= len(NAMES) * len(allowed), (caller, query)
        for caller in CALLERS[1:]:
            page = await scene.read(caller, "workloads")
            expected = {(project, name) for project in visible_to(caller, here) for name in NAMES}
            assert {(each["project"], each["name"]) for each in page["items"]} == expected
            assert page["total"] == len(expected)
        await check_histories(here)
        await check_hostile_queries_are_refused(here)
        statuses = [(await here.request(each, "GET", "/nodes")).status for each in CALLERS]
        assert statuses == [200] + [403] * 5


async def check_histories(here: TenantProjects) -> None:
    for project in (here.ads, here.search):
        for path in ("/history", "/workloads/hello/history", "/workloads/hello/last-state"):
            for caller in CALLERS:
                answer = await here.request(caller, "GET", f"/projects/{project}{path}")
                may = project in visible_to(caller, here)
                assert answer.status == (200 if may else 404), (caller, path)
                if may and "entries" in answer.body:
                    assert {each["project"] for each in answer.body["entries"]} == {project}


class EventReader:
    """Reads the events of a stream."""

    def __init__(self, response: Any) -> None:
        self._response = response
        self.seen: list[tuple[str, str]] = []
        """Project and name of each item; an empty project for `reload`."""

    async def until(self, project: str, name: str) -> None:
        """Reads until a workload of that name."""
        async with asyncio.timeout(WAIT_S):
            async for line in self._response.content:
                if line.startswith(b"data: "):
                    data = msgspec.json.decode(line.removeprefix(b"data: "))
                    self.seen.append((data.get("project", ""), data.get("name", "")))
                    if self.seen[-1] == (project, name):
                        return
        raise AssertionError(f"the stream ended: {self.seen}")


@pytest.mark.cluster
async def test_streams_carry_own_projects_and_end_with_the_membership(
    plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pincompute.insight.server.HEARTBEAT_INTERVAL_S", 0.5)
    async with attacked(plane, tmp_path) as scene:
        here = scene.here
        http = here.world.http
        vera, root, eve = ({"Authorization": f"Bearer {name}"} for name in ("vera", "root", "eve"))
        async with (
            http.get("/v1/changes", headers=vera) as of_vera,
            http.get("/v1/changes", headers=root) as of_root,
            http.get("/v1/changes", headers=eve) as of_eve,
        ):
            assert (of_vera.status, of_vera.content_type) == (200, "text/event-stream")
            viewer, administrator, stranger = EventReader(of_vera), EventReader(of_root), EventReader(of_eve)
            assert (await here.deploy("otto", here.search)).status == 201
            await administrator.until(here.search, "hello")
            assert (await here.deploy("dan", here.ads)).status == 201
            await viewer.until(here.ads, "hello")
            assert viewer.seen == [(here.ads, "hello")]
            # From the removal on nothing of the project arrives, although the stream is still open.
            document: Object = {"spec": {"members": {"viewer": None}}}
            await here.world.client.patch(
                CUSTOM_RESOURCES["Project"], here.ads, "", document, style="merge", manager=ENGINE
            )
            await wait_until_hidden(here, "vera")
            assert (await here.deploy("dan", here.ads, HELLO.replace("name: hello", "name: later"))).status == 201
            await administrator.until(here.ads, "later")
            # It ends with `reload` at the next heartbeat, as the caller has other projects now.
            await viewer.until("", "")
            assert (here.ads, "later") not in viewer.seen
            assert stranger.seen == []


async def wait_until_hidden(here: TenantProjects, caller: str) -> None:
    async with asyncio.timeout(WAIT_S):
        while (await here.request(caller, "GET", f"/projects/{here.ads}/workloads")).status != 404:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


@pytest.mark.cluster
async def test_streams_of_one_caller_are_bounded_and_leave_room_for_others(plane: ControlPlane, tmp_path: Path) -> None:
    limits = Limits(rate=0, streams=QueueLimits(max_running=20, max_waiting=0, max_per_client=5))
    async with attacked(plane, tmp_path, limits) as scene:
        http = scene.here.world.http
        opened = [await http.get("/v1/changes", headers={"Authorization": "Bearer vera"}) for _ in range(8)]
        other = await http.get("/v1/changes", headers={"Authorization": "Bearer otto"})
        assert [each.status for each in opened] == [200] * 5 + [429] * 3
        assert other.status == 200
        for each in (*opened, other):
            each.close()


HOSTILE_QUERIES = (
    {"project": "*"},
    {"project": "../"},
    {"search": "x" * 7_000}, {"fields": "a," * 3_000}, {"cursor": "A" * 7_000}, {"limit": "501"}, {"limit": "-1"},
    {"sort": "secret"}, {"cursor": "'; DROP TABLE entries_1"}, {"search": "\0"}, {"fields": "__class__"},
)  # fmt: skip


async def check_hostile_queries_are_refused(here: TenantProjects) -> None:
    for query in HOSTILE_QUERIES:
        answer = await here.request("vera", "GET", f"/workloads?{urlencode(query)}")
        assert (answer.reason, answer.status < 500) == ("DocumentInvalid", True), query
    # Beyond what the server reads of a request line.
    answer = await here.request("vera", "GET", f"/workloads?search={'x' * 10_000}")
    assert answer.status == 400


async def test_only_the_certificate_of_the_desk_is_answered(tmp_path: Path) -> None:
    """Another part of the platform, a certificate of another authority and no certificate are refused."""
    ours, theirs = Authority(tmp_path / "ours"), Authority(tmp_path / "theirs")
    for authority in (ours, theirs):
        authority.establish()
        authority.issue(DESK)
        authority.issue("pincompute-operator")
    ours.issue(INSIGHT, hosts=("127.0.0.1", "localhost"))

    def connector(authority: Authority, user: str) -> TCPConnector:
        context = ssl.create_default_context(cafile=str(ours.bundle))
        if user:
            context.load_cert_chain(authority.certificate(user), authority.key(user))
        return TCPConnector(ssl=context)

    async with insight_world(tmp_path) as world:
        world.put(insight_workload("web", port=80))
        app = build_app(world.fleet, world.freshness, is_desk)
        tls = mutual_tls_context(ours.certificate(INSIGHT), ours.bundle)
        port = free_port()
        async with serve_http(f"127.0.0.1:{port}", app, tls=tls, grace=1.0):
            url = f"https://127.0.0.1:{port}/v1/workloads"
            for authority, user, expected in (
                (ours, DESK, 200), (ours, "pincompute-operator", 403), (theirs, DESK, 0), (ours, "", 0),
            ):  # fmt: skip
                async with ClientSession(connector=connector(authority, user)) as session:
                    assert await status_of(session, url) == expected, (user, expected)


async def status_of(session: ClientSession, url: str) -> int:
    """0 if the connection is refused."""
    try:
        async with session.post(url, data=b"{}") as response:
            await response.read()
            return response.status
    except (ClientConnectorError, ClientError, OSError):
        return 0


def free_port() -> int:
    from pincompute.engine.ports import choose_ports

    return choose_ports({}, None)["insight"]

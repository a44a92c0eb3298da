"""The HTTP API of insight as the desk uses it."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import ClientSession, ClientTimeout, web
from tests.support.manual_clock import ManualClock

from insight_world import InsightWorld, insight_node, insight_pod, insight_workload, insight_world
from pincompute.api.insight import (
    NODES,
    REPLICAS,
    WORKLOADS,
    ChangeFrame,
    ChangesRequest,
    InsightQuery,
    ListRequest,
    NodePage,
    ReplicaPage,
    WorkloadPage,
    WriteMark,
)
from pincompute.base.problem import Refused
from pincompute.base.reasons import DOCUMENT_INVALID
from pincompute.insight.change_stream import MAX_QUEUED_EVENTS
from pincompute.insight.server import MAX_BODY_BYTES
from pincompute.platforms.insight_client import DOWN_INTERVAL_S, InsightClient

WAIT_S = 60.0


async def fill(world: InsightWorld) -> None:
    for project in ("ads", "search"):
        web_workload = insight_workload("web", project, port=80)
        world.put(web_workload)
        world.put(insight_pod(web_workload, 0))
    world.put(insight_node("node-1", ready=False))


async def names_of(world: InsightWorld, projects: list[str] | None, **query: Any) -> list[str]:
    answer = await world.client.page(WORKLOADS, ListRequest(projects=projects, query=InsightQuery(**query)))
    page = msgspec.json.decode(answer.body, type=WorkloadPage)
    return [f"{each.project}/{each.name}" for each in page.items]


async def test_lists_have_the_items_of_the_named_projects(tmp_path: Path) -> None:
    async with insight_world(tmp_path) as world:
        await fill(world)
        assert await names_of(world, None) == ["ads/web", "search/web"]
        assert await names_of(world, ["ads"]) == ["ads/web"]
        assert await names_of(world, ["ads"], project="search") == []
        assert await names_of(world, []) == []
        replicas = await world.client.page(REPLICAS, ListRequest(query=InsightQuery(node="node-1", workload="web")))
        found = msgspec.json.decode(replicas.body, type=ReplicaPage)
        assert [(each.project, each.name, each.state) for each in found.items] == [
            ("ads", "web-0", "Ready"),
            ("search", "web-0", "Ready"),
        ]
        nodes = msgspec.json.decode((await world.client.page(NODES, ListRequest())).body, type=NodePage)
        assert [(each.name, each.ready, each.reason) for each in nodes.items] == [
            ("node-1", False, "NodeStatusUnknown")
        ]
        # Nodes belong to no project.
        hidden = await world.client.page(NODES, ListRequest(projects=["ads"]))
        assert msgspec.json.decode(hidden.body, type=NodePage).total == 0


async def test_unchanged_page_is_not_sent_again(tmp_path: Path) -> None:
    async with insight_world(tmp_path) as world:
        await fill(world)
        asked = ListRequest(projects=["ads"])
        first = await world.client.page(WORKLOADS, asked)
        again = await world.client.page(WORKLOADS, asked, first.etag)
        assert (again.not_modified, again.body) == (True, b"")
        world.put(insight_workload("web", "search", reason="CrashLoop", port=80))
        assert (await world.client.page(WORKLOADS, asked, first.etag)).not_modified
        assert not (await world.client.page(WORKLOADS, ListRequest(projects=["search"]), first.etag)).not_modified
        world.put(insight_workload("web", reason="CrashLoop", port=80))
        assert not (await world.client.page(WORKLOADS, asked, first.etag)).not_modified
        world.freshness.age = 30
        stale = await world.client.page(WORKLOADS, asked, (await world.client.page(WORKLOADS, asked)).etag)
        assert (stale.not_modified, stale.age_s) == (False, 30)


async def test_list_and_stream_together_miss_nothing(tmp_path: Path) -> None:
    async with insight_world(tmp_path) as world:
        await fill(world)
        page = msgspec.json.decode((await world.client.page(WORKLOADS, ListRequest())).body, type=WorkloadPage)
        world.put(insight_workload("api", port=80))
        world.put(insight_workload("hidden", "search", port=80))
        frames = world.client.changes(ChangesRequest(projects=["ads"], after=page.position))
        async with asyncio.timeout(WAIT_S):
            assert (await anext(frames)).event == ""
            frame = await anext(frames)
            assert (frame.event, msgspec.json.decode(frame.data)["name"]) == ("workloads", "api")
            world.delete(insight_workload("web", port=80))
            frame = await anext(frames)
            assert (frame.event, msgspec.json.decode(frame.data)["uid"]) == ("gone", "uid-ads-web")
        await frames.aclose()


async def test_reader_that_does_not_read_is_told_to_reload(tmp_path: Path) -> None:
    async with insight_world(tmp_path) as world:
        frames = world.client.changes(ChangesRequest())
        async with asyncio.timeout(WAIT_S):
            assert (await anext(frames)).event == ""
            for number in range(MAX_QUEUED_EVENTS + 1):
                # Published without a turn for the handler, as by a burst of the cluster.
                world.fleet.stream.send_change("workloads", "ads", number)
            events = [each.event async for each in frames]
        assert events == ["reload"]


async def test_answers_only_when_it_has_the_named_writes(tmp_path: Path) -> None:
    async with insight_world(tmp_path) as world:
        await fill(world)
        mark = WriteMark(kind="PinterestService", name="web", revision=world.freshness.newest)
        assert (await world.client.summaries("ads", [mark])).body.startswith(b"[{")
        with pytest.raises(Refused, match="has not received the last write"):
            await world.client.summaries("ads", [msgspec.structs.replace(mark, revision=mark.revision + 1)])


async def test_does_not_answer_before_its_caches_are_filled(tmp_path: Path) -> None:
    async with insight_world(tmp_path) as world:
        world.freshness.synced.clear()
        for ask in (world.client.page(WORKLOADS, ListRequest()), world.client.summaries("ads", [])):
            with pytest.raises(Refused, match="not listed the cluster yet"):
                await ask
        async with ClientSession(world.address) as session, session.get("/readyz") as response:
            assert (response.status, await response.read()) == (503, b"the caches are not filled yet\n")


def nobody(_: web.Request) -> bool:
    return False


async def test_refuses_every_caller_but_the_desk(tmp_path: Path) -> None:
    async with insight_world(tmp_path, is_desk=nobody) as world, ClientSession(world.address) as session:
        for method, path in (
            ("GET", "/healthz"), ("GET", "/readyz"), ("POST", "/v1/workloads"), ("POST", "/v1/changes"),
            ("POST", "/v1/history"), ("POST", "/v1/last-state"), ("POST", "/v1/summaries"),
        ):  # fmt: skip
            async with session.request(method, path, data=b"{}") as response:
                assert (response.status, (await response.json(content_type=None))["errors"][0]["reason"]) == (
                    403,
                    "Forbidden",
                ), path


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[" * 100_000, b'{"projects": 3}', b'{"query": {"limit": 0}}', b"\xff", b'{"query": []}']
)
async def test_refuses_malformed_requests(body: bytes, tmp_path: Path) -> None:
    async with (
        insight_world(tmp_path) as world,
        ClientSession(world.address) as session,
        session.post("/v1/workloads", data=body) as response,
    ):
        assert (response.status, await response.read() != b"") == (DOCUMENT_INVALID.http_status, True)


async def test_refuses_a_request_that_is_too_long(tmp_path: Path) -> None:
    body = io.BytesIO(b" " * (MAX_BODY_BYTES + 1))
    async with (
        insight_world(tmp_path) as world,
        ClientSession(world.address) as session,
        session.post("/v1/workloads", data=body) as response,
    ):
        assert response.status == 413
        await response.read()


async def test_client_does_not_ask_a_server_that_is_gone_twice_at_once(tmp_path: Path) -> None:
    async with insight_world(tmp_path) as world:
        address = world.address
    async with ClientSession(address, timeout=ClientTimeout(WAIT_S)) as session:
        clock = ManualClock()
        client = InsightClient(session, clock)
        for why in ("Cannot connect", "a moment ago", "a moment ago"):
            with pytest.raises(Refused, match=why):
                await client.summaries("ads", [])
        await clock.sleep(DOWN_INTERVAL_S)
        with pytest.raises(Refused, match="Cannot connect"):
            await client.summaries("ads", [])


def test_frames_of_a_stream_are_one_line() -> None:
    frame = msgspec.json.encode(ChangeFrame(data=msgspec.Raw(msgspec.json.encode({"name": "a\nb\r\u2028"}))))
    assert b"\n" not in frame
    assert b"\r" not in frame

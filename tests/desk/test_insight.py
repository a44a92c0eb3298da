"""The desk with insight: its lists and watches, what it does without an answer, and reading one's own writes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from control_plane import ControlPlane
from desk_fixtures import AUTH_HEADERS, DeskWorld, desk_world
from insight_process import RunningInsight, running_insight
from insight_world import insight_workload, insight_world
from pincompute.api.insight import WriteMark
from pincompute.api.workload_summary import WorkloadChange, WorkloadSummary
from pincompute.desk.insight import ProjectWatcher
from pincompute.planning.views.summary import summarize
from workloads import HELLO, cluster_client

WAIT_S = 60.0


@asynccontextmanager
async def desk_with_insight(plane: ControlPlane, folder: Path) -> AsyncGenerator[tuple[DeskWorld, RunningInsight]]:
    async with (
        cluster_client(plane) as client,
        running_insight(client, folder) as insight,
        desk_world(plane, folder, insight=insight.client) as world,
    ):
        yield world, insight


async def listed(world: DeskWorld) -> tuple[list[str], dict[str, str]]:
    async with world.http.get(f"/v1/projects/{world.project}/workloads", headers=AUTH_HEADERS) as response:
        found = msgspec.json.decode(await response.read(), type=list[WorkloadSummary])
        headers = {name: response.headers[name] for name in ("Age", "Source") if name in response.headers}
        return sorted(each.label for each in found), headers


@pytest.mark.cluster
async def test_own_writes_are_read_and_lists_ask_the_api_server_nothing(plane: ControlPlane, tmp_path: Path) -> None:
    async with desk_with_insight(plane, tmp_path) as (world, _):
        for number in range(10):
            status, _ = await world.submit(HELLO.replace("name: hello", f"name: hello-{number}"))
            assert status == 201
            names, headers = await listed(world)
            assert (names, headers) == ([f"hello-{each}@1" for each in range(number + 1)], {})
        before = world.client.request_stats.requests.total()
        for _ in range(20):
            await listed(world)
        assert world.client.request_stats.requests.total() == before
        path = f"/v1/projects/{world.project}/workloads/hello-3"
        async with world.http.delete(path, headers=AUTH_HEADERS) as response:
            assert response.status == 204
        assert "hello-3@1" not in (await listed(world))[0]


@pytest.mark.cluster
async def test_history_names_callers_and_lists_are_read_directly_without_insight(
    plane: ControlPlane, tmp_path: Path
) -> None:
    async with desk_with_insight(plane, tmp_path) as (world, insight):
        assert (await world.submit(HELLO))[0] == 201
        await check_history_names_callers(world)
        assert await listed(world) == (["hello@1"], {})
        await insight.server.close()
        assert await listed(world) == (["hello@1"], {"Source": "direct"})
        async with world.http.get("/v1/workloads", headers=AUTH_HEADERS) as response:
            assert (response.status, b"InsightUnavailable" in await response.read()) == (503, True)


async def check_history_names_callers(world: DeskWorld) -> None:
    path = f"/v1/projects/{world.project}/workloads/hello"
    async with asyncio.timeout(WAIT_S):
        while True:
            async with world.http.get(f"{path}/history", headers=AUTH_HEADERS) as response:
                body = await response.read()
            if response.status == 200:
                break
            await asyncio.sleep(0.05)
    created = msgspec.json.decode(body)["entries"][-1]
    assert (created["event"], created["caller"]) == ("created", "pat")
    for missing in ("history", "last-state"):
        async with world.http.get(path.replace("hello", "nothing") + f"/{missing}", headers=AUTH_HEADERS) as gone:
            assert (gone.status, b"WorkloadUnknown" in await gone.read()) == (404, True)


def no_writes(_: str) -> Sequence[WriteMark]:
    return ()


async def test_watch_continues_without_insight_and_repeats_nothing(tmp_path: Path) -> None:
    """A reader sees the difference between what insight had and what the desk's own watch has."""
    web, api = insight_workload("web", port=80), insight_workload("api", port=80)
    broken = insight_workload("web", reason="CrashLoop", port=80)

    async def direct(_: str) -> AsyncGenerator[WorkloadChange]:
        yield WorkloadChange(current=[summarize(broken), summarize(insight_workload("new", port=80))])
        yield WorkloadChange(deleted=["new"])

    async with insight_world(tmp_path) as world:
        world.put(web)
        watched = ProjectWatcher(world.client, no_writes, direct).watch("ads")
        async with asyncio.timeout(WAIT_S):
            assert [each.name for each in (await anext(watched)).current] == ["web"]
            world.put(api)
            world.put(insight_workload("hidden", "search", port=80))
            assert [each.name for each in (await anext(watched)).current] == ["api"]
            world.delete(api)
            assert await anext(watched) == WorkloadChange(deleted=["api"])
            # As a process that ends: its connections break, and it answers no more.
            world.freshness.synced.clear()
            for _ in range(1_100):
                world.fleet.stream.send_change("replicas", "ads", 0)
            change = await anext(watched)
            assert [(each.name, each.reason) for each in change.current] == [
                ("new", "Available"),
                ("web", "CrashLoop"),
            ]
            assert await anext(watched) == WorkloadChange(deleted=["new"])
        await watched.aclose()

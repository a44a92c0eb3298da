"""Insight over many workloads: lists by HTTP, the delay of changes with a thousand streams, and memory for each pod."""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.insight_world import InsightWorld, insight_pod, insight_workload, insight_world

from bench.figures import Figure
from pincompute.api.insight import WORKLOADS, ChangesRequest, InsightQuery, ListRequest

SERVICES = 20_000
PODS_IN_MEMORY = 5_000
STREAMS = 1_000
LISTS = 300
CHANGES = 30


def figures() -> Iterator[Figure]:
    with TemporaryDirectory() as folder:
        lists, searches, delays = asyncio.run(_measure(Path(folder)))
    yield Figure("insight.list", f"a list of 100 of {SERVICES:,} workloads, P99", [_percentile_99(lists)], 0.02)
    yield Figure("insight.search", "the same with a search", [_percentile_99(searches)], 0.1)
    yield Figure("insight.change", f"a change until {STREAMS:,} streams have it, P99", [_percentile_99(delays)], 0.5)
    yield Figure("insight.pod", "memory for each cached replica, in KB", [_pod_kilobytes()], 10, unit="KB")


async def _measure(folder: Path) -> tuple[list[float], list[float], list[float]]:
    async with insight_world(folder) as world:
        for number in range(SERVICES):
            world.put(insight_workload(f"w{number:05}", f"project-{number % 200}", port=80))
        lists = [await _time_list(world, InsightQuery()) for _ in range(LISTS)]
        searches = [await _time_list(world, InsightQuery(search=f"w{number:05}")) for number in range(100)]
        return lists, searches, await _time_changes(world)


async def _time_list(world: InsightWorld, query: InsightQuery) -> float:
    start = time.perf_counter()
    await world.client.page(WORKLOADS, ListRequest(query=query))
    return time.perf_counter() - start


async def _time_changes(world: InsightWorld) -> list[float]:
    """Seconds until the last of all readers has a change."""
    streams = [world.client.changes(ChangesRequest(after=world.fleet.stream.position)) for _ in range(STREAMS)]
    for stream in streams:
        await anext(stream)
    delays: list[float] = []
    for _ in range(CHANGES):
        reads = [asyncio.ensure_future(anext(stream)) for stream in streams]
        start = time.perf_counter()
        world.put(insight_workload("w00000", "project-0", reason="CrashLoop", port=81))
        world.put(insight_workload("w00000", "project-0", port=81))
        await asyncio.gather(*reads)
        delays.append(time.perf_counter() - start)
        await asyncio.gather(*(anext(stream) for stream in streams))
    for stream in streams:
        await stream.aclose()
    return delays


def _pod_kilobytes() -> float:
    owner = insight_workload("web", port=80)
    tracemalloc.start()
    kept = [insight_pod(owner, number) for number in range(PODS_IN_MEMORY)]
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size / len(kept) / 1_000


def _percentile_99(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]

"""Insight with watches on a real API server, in the process of the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from aiohttp import ClientSession
from aiohttp.test_utils import BaseTestServer, TestServer

from insight_world import any_caller
from pincompute.insight.change_stream import ChangeStream
from pincompute.insight.fleet import Fleet
from pincompute.insight.freshness import Freshness
from pincompute.insight.history import History
from pincompute.insight.history_store import open_history_store
from pincompute.insight.server import build_app
from pincompute.insight.watches import FleetWatches
from pincompute.kube.client import Client
from pincompute.platforms.insight_client import InsightClient


class RunningInsight(NamedTuple):
    client: InsightClient
    fleet: Fleet
    server: BaseTestServer
    """Closing it is as if the process ended."""


@asynccontextmanager
async def running_insight(client: Client, folder: Path, epoch: str = "epoch") -> AsyncGenerator[RunningInsight]:
    store = await open_history_store(str(folder / "insight.db"))
    history = History(store, client.clock)
    await history.load()
    fleet = Fleet("main", ChangeStream(epoch), history, client.clock)
    watches = FleetWatches(client, fleet)
    freshness = Freshness(client, client.clock, watches.workloads)
    tasks = [asyncio.create_task(each) for each in (watches.run(freshness), freshness.run(), history.run())]
    try:
        async with (
            TestServer(build_app(fleet, freshness, any_caller)) as server,
            ClientSession(str(server.make_url("/"))) as session,
        ):
            async with asyncio.timeout(60):
                await freshness.synced.wait()
            yield RunningInsight(InsightClient(session, client.clock), fleet, server)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await store.close()

"""A fleet of insight without watches: tests send the events of a cluster, and read by HTTP as the desk does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from aiohttp import ClientSession, TCPConnector, web
from aiohttp.test_utils import TestServer
from tests.support.manual_clock import ManualClock

from pincompute.api.kinds import WORKLOADS
from pincompute.api.names import API_VERSION, KIND_LABEL, WORKLOAD_LABEL
from pincompute.api.project import Project
from pincompute.api.workload import Workload
from pincompute.base.clock import SystemClock
from pincompute.insight.change_stream import ChangeStream
from pincompute.insight.fleet import Fleet
from pincompute.insight.freshness import Freshness
from pincompute.insight.history import History
from pincompute.insight.history_store import HistoryStore, open_history_store
from pincompute.insight.items import Node
from pincompute.insight.server import build_app
from pincompute.kube.watch import ADDED, DELETED, MODIFIED, Event
from pincompute.objects.times import format_time
from pincompute.planning.observed_pods import Pod
from pincompute.platforms.insight_client import InsightClient

START = datetime(2026, 1, 31, 12, tzinfo=UTC)


def time_after(seconds: float) -> str:
    return format_time(START + timedelta(seconds=seconds))


def insight_workload(
    name: str,
    project: str = "ads",
    kind: str = "PinterestService",
    *,
    reason: str = "",
    generation: int = 1,
    **spec: Any,
) -> Workload:
    """A workload: ready, or with the reason of a problem."""
    conditions = [
        {
            "type": goal, "status": "False" if reason else "True", "reason": reason or "Available",
            "message": f"message of {name}", "lastTransitionTime": time_after(0),
        }
        for goal in ("Ready", "Succeeded")
    ]  # fmt: skip
    needed = {"PinterestCronJob": {"schedule": "0 3 * * *"}, "PinterestStatefulSet": {"storage": "1Gi"}}.get(kind, {})
    document = {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {
            "name": name, "namespace": project, "uid": f"uid-{project}-{name}", "generation": generation,
            "resourceVersion": "5", "creationTimestamp": time_after(-60),
        },
        "spec": {"image": "hello:1", **needed, **spec},
        "status": {"observedGeneration": generation, "revision": generation, "conditions": conditions},
    }  # fmt: skip
    return msgspec.convert(document, WORKLOADS[kind])


def insight_pod(workload: Workload, number: int, *, node: str = "node-1", restarts: int = 0, **status: Any) -> Pod:
    """A ready pod; `status` replaces parts of its status."""
    metadata = workload.metadata
    ready = [
        {"type": kind, "status": "True", "lastTransitionTime": time_after(seconds)}
        for kind, seconds in (("PodScheduled", 1), ("PodReadyToStartContainers", 3), ("Ready", 9))
    ]
    document = {
        "metadata": {
            "name": f"{metadata.name}-{number}", "namespace": metadata.namespace,
            "uid": f"pod-{metadata.namespace}-{metadata.name}-{number}", "creationTimestamp": time_after(0),
            "labels": {WORKLOAD_LABEL: metadata.name, KIND_LABEL: workload.kind},
        },
        "spec": {"nodeName": node},
        "status": {
            "phase": "Running", "startTime": time_after(2), "conditions": ready,
            "containerStatuses": [
                {
                    "name": "main", "ready": True, "restartCount": restarts,
                    "state": {"running": {"startedAt": time_after(7)}},
                    "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}} if restarts else {},
                }
            ],
            **status,
        },
    }  # fmt: skip
    return msgspec.convert(document, Pod)


def insight_node(name: str, *, ready: bool = True, cordoned: bool = False) -> Node:
    condition = {"type": "Ready", "status": str(ready), "reason": "KubeletReady" if ready else "NodeStatusUnknown"}
    document = {
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {"unschedulable": cordoned},
        "status": {"conditions": [condition]},
    }
    return msgspec.convert(document, Node)


def insight_project(name: str, uid: str = "", created_s: float = -600) -> Project:
    metadata = {"name": name, "uid": uid or f"uid-{name}", "creationTimestamp": time_after(created_s)}
    return msgspec.convert({"metadata": metadata, "spec": {"owner": "me"}}, Project)


class InsightWorld(NamedTuple):
    fleet: Fleet
    history: History
    store: HistoryStore
    clock: ManualClock
    client: InsightClient
    freshness: UnwatchedFreshness
    address: str

    def put(self, object: Any, before: Any = None) -> None:  # noqa: A002  (as Event names it)
        self._send(Event(ADDED if before is None else MODIFIED, object, before))

    def delete(self, object: Any) -> None:  # noqa: A002
        self._send(Event(DELETED, object))

    def _send(self, event: Event[Any]) -> None:
        match event.object:
            case Pod():
                self.fleet.on_pod(event)
            case Node():
                self.fleet.on_node(event)
            case Project():
                self.fleet.on_project(event)
            case _:
                self.fleet.on_workload(event)


class UnwatchedFreshness(Freshness):
    """Freshness whose age a test sets. Writes have arrived, except those above a revision."""

    def __init__(self) -> None:
        self.synced = asyncio.Event()
        self.synced.set()
        self.age = 0.0
        self.newest = 1_000

    def age_s(self) -> float:
        return self.age

    async def wait_for_writes(self, project: str, writes: Any) -> bool:
        return all(each.revision <= self.newest for each in writes)


def any_caller(_: web.Request) -> bool:
    return True


@asynccontextmanager
async def insight_world(
    folder: Path,
    *,
    database: str = "",
    epoch: str = "epoch",
    is_desk: Any = any_caller,
    clock: ManualClock | None = None,
) -> AsyncGenerator[InsightWorld]:
    clock = clock or ManualClock(START)
    store = await open_history_store(database or str(folder / "insight.db"))
    history = History(store, clock)
    await history.load()
    fleet = Fleet("main", ChangeStream(epoch), history, clock)
    freshness = UnwatchedFreshness()
    try:
        async with TestServer(build_app(fleet, freshness, is_desk)) as server:
            address = str(server.make_url("/"))
            async with ClientSession(address, connector=TCPConnector(limit=0)) as session:
                client = InsightClient(session, SystemClock())
                yield InsightWorld(fleet, history, store, clock, client, freshness, address)
    finally:
        await store.close()

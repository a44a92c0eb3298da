"""Reconcile loop on a real API server: latency from an edit to the updated object, idle and during a resync."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, NamedTuple

import msgspec
from tests.support.control_plane import ControlPlane

from bench.empty_control_plane import empty_control_plane
from bench.figures import Figure
from pincompute.api.manifests import crds
from pincompute.api.names import CLI_MANAGER, ENGINE, PROJECT_LABEL
from pincompute.base.gc_settings import freeze_gc, relax_gc
from pincompute.controller.passes import Key, Trigger
from pincompute.controller.resources import CUSTOM_RESOURCES, OPTIONAL_NATIVES, RECONCILED_KINDS
from pincompute.kube.client import Client
from pincompute.kube.resource import CRDS, DEPLOYMENTS, NAMESPACES
from pincompute.kube.watch import ADDED, Event
from pincompute.objects.content import Object
from pincompute.operator.manager import ControllerManager
from pincompute.planning.kinds.planners import PLANNERS
from pincompute.planning.snapshot import Native, Snapshot
from pincompute.planning.views.plan_preview import LOCAL_CLUSTER

SERVICES = CUSTOM_RESOURCES["PinterestService"]
ME = "me"
WORKLOADS = 50
EDITS = 100
RESYNCED_WORKLOADS = 4_000
"""Workloads in the resync. Each has four Kubernetes objects: 20,000 objects in all."""
READS = {"get", "list", "watch"}


def figures() -> Iterator[Figure]:
    with empty_control_plane() as (plane, _):
        yield from asyncio.run(_measure(plane))


class Bench(NamedTuple):
    user: Client
    operator: Client
    loops: ControllerManager

    @property
    def requests(self) -> int:
        """Requests of the operator, without lists and watches, which it sends also without any work."""
        return sum(
            count for each, count in self.operator.request_stats.requests.items() if each.verb not in {"list", "watch"}
        )

    @property
    def writes(self) -> int:
        return sum(count for each, count in self.operator.request_stats.requests.items() if each.verb not in READS)

    async def wait_until_idle(self) -> None:
        passes = -1
        while passes != self.loops.loop.pass_count or self.loops.loop.queue_length:
            passes = self.loops.loop.pass_count
            await asyncio.sleep(0.5)


@asynccontextmanager
async def _running_bench(plane: ControlPlane) -> AsyncGenerator[Bench]:
    async with Client(plane.access(), "bench") as user, Client(plane.access(), "operator") as operator:
        for crd in crds():
            await user.apply(crd, CRDS, manager=ENGINE)
        await user.apply({"metadata": {"name": ME, "labels": {PROJECT_LABEL: ME}}}, NAMESPACES, manager=ENGINE)
        loops = ControllerManager(operator, LOCAL_CLUSTER)
        running = asyncio.create_task(loops.run())
        # The API server serves new kinds a little later.
        while not loops.cache.complete or loops.cache.unwatchable_kinds.keys() - OPTIONAL_NATIVES.keys():  # noqa: ASYNC110  (startup only)
            await asyncio.sleep(0.1)
        yield Bench(user, operator, loops)
        running.cancel()
        await asyncio.wait({running})


async def _measure(plane: ControlPlane) -> list[Figure]:
    relax_gc()
    async with _running_bench(plane) as bench:
        await asyncio.gather(*(_write(bench.user, f"w{number}", "web:0") for number in range(WORKLOADS)))
        await bench.wait_until_idle()
        made = bench.requests / WORKLOADS
        settled = bench.writes
        for number in range(WORKLOADS):
            bench.loops.loop.enqueue(Key(ME, f"w{number}"), Trigger.CONTEXT_CHANGED)
        await bench.wait_until_idle()
        writes = bench.writes - settled
        alone = await _edits(bench)
        _fill(bench.loops)
        # As the operator does after its first sync.
        freeze_gc()
        during, stall, own = await _resync(bench)
    return [
        Figure("loop.requests", "API requests of the operator per new service, including Events", [made], unit=""),
        Figure("loop.settled", f"writes when {WORKLOADS} settled services are reconciled again", [writes], 0, ""),
        *_spread("loop.edit", "edit of a resource until its Deployment is updated", alone, 0.2, 1),
        *_spread("P15", f"the same during a resync of {RESYNCED_WORKLOADS * 5:,} objects", during, None, 1),
        Figure("P16", "longest stall of the event loop in the resync", [stall], 0.1),
        Figure("loop.own", "longest processor time without yielding in the resync", [own], 0.1),
    ]


def _spread(id_: str, what: str, seconds: Sequence[float], median: float | None, worst: float) -> list[Figure]:
    """Median and P99."""
    p99 = statistics.quantiles(seconds, n=100)[98]
    return [
        Figure(f"{id_}.p50", f"{what}, median", [statistics.median(seconds)], median),
        Figure(id_ if id_ == "P15" else f"{id_}.p99", f"{what}, P99 of {len(seconds)}", [p99], worst),
    ]


async def _write(user: Client, name: str, image: str) -> None:
    body: Object = {"metadata": {"name": name, "namespace": ME}, "spec": {"image": image, "port": 80, "replicas": 0}}
    await user.apply(body, SERVICES, manager=CLI_MANAGER)


async def _edits(bench: Bench) -> list[float]:
    """Makes edits one after the other, each until a watch shows the Deployment with the new image."""
    observed: dict[str, asyncio.Event] = {f"web:{number}": asyncio.Event() for number in range(1, EDITS + 1)}

    async def watch_images() -> None:
        async with aclosing(bench.user.watch(DEPLOYMENTS, ME)) as events:
            async for event in events:
                image = event.object["spec"]["template"]["spec"]["containers"][0]["image"]
                if image in observed:
                    observed[image].set()

    watching = asyncio.create_task(watch_images())
    await asyncio.sleep(0.5)
    took = []
    for number, (image, event) in enumerate(observed.items()):
        began = time.perf_counter()
        await _write(bench.user, f"w{number % WORKLOADS}", image)
        await event.wait()
        took.append(time.perf_counter() - began)
    watching.cancel()
    await asyncio.wait({watching})
    return took


async def _resync(bench: Bench) -> tuple[list[float], float, float]:
    """Reconciles all workloads repeatedly for as long as the edits take."""
    longest, own = 0.0, 0.0
    before = bench.loops.loop.pass_count

    async def touch() -> None:
        while True:
            for key in _KEYS:
                bench.loops.loop.enqueue(key, Trigger.CONTEXT_CHANGED)
            # Workloads in backoff wait as well, and are not in the queue.
            await asyncio.sleep(0.5)

    async def stall() -> None:
        nonlocal longest, own
        while True:
            began, worked = time.perf_counter(), time.thread_time()
            await asyncio.sleep(0.005)
            longest = max(longest, time.perf_counter() - began - 0.005)
            own = max(own, time.thread_time() - worked)

    tasks = [asyncio.create_task(touch()), asyncio.create_task(stall())]
    took = await _edits(bench)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert bench.loops.loop.pass_count - before > RESYNCED_WORKLOADS / 2, "there was no resync"
    return took, longest, own


_KEYS = [Key("others", f"r{number}") for number in range(RESYNCED_WORKLOADS)]


def _fill(loops: ControllerManager) -> None:
    """Adds settled workloads to the operator's cache, as if they had been watched. The API server has none of them."""
    view: Any = loops.cache
    for number, key in enumerate(_KEYS):
        metadata = {"name": key.name, "namespace": key.project, "uid": f"uid-{number}", "generation": 1}
        body = {"metadata": metadata, "kind": SERVICES.kind, "spec": {"image": "web:1", "port": 80, "replicas": 0}}
        owner: Any = msgspec.convert(body, RECONCILED_KINDS[SERVICES.kind])
        snapshot = Snapshot(owner, (), (), LOCAL_CLUSTER, loops.client.clock.now())
        while True:
            plan = PLANNERS[SERVICES.kind](snapshot)
            natives = tuple(msgspec.convert(each, Native) for each in plan.wanted)
            owner = msgspec.structs.replace(owner, status=plan.status)
            if len(natives) == len(snapshot.natives) and owner == snapshot.owner:
                break
            snapshot = snapshot._replace(natives=natives, owner=owner)
        view._on_owner_event(Event(ADDED, owner))  # noqa: SLF001  (what its informers do)
        for each in natives:
            view._on_member_event(view._natives, each.kind, Event(ADDED, each))  # noqa: SLF001

"""The loop on a real API server: from an edit to the native that follows it, alone and while 20,000 objects resync."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, NamedTuple

import msgspec
from tests.control_plane import ControlPlane

from bench.figures import Figure
from bench.plane import bare_plane
from pincompute.api.manifests import crds
from pincompute.api.names import ENGINE, HAND, PROJECT
from pincompute.base.memory import keep_all, keep_much
from pincompute.controller.passes import Cause, Key
from pincompute.controller.resources import NEIGHBOURS, NOUNS, PLANNED
from pincompute.kube.client import Client
from pincompute.kube.resource import CRDS, DEPLOYMENTS, NAMESPACES
from pincompute.kube.watch import ADDED, Event
from pincompute.objects.content import Object
from pincompute.operator.loops import Loops
from pincompute.planning.people.preview import LAPTOP
from pincompute.planning.planners import PLANNERS
from pincompute.planning.snapshot import Native, Snapshot

SERVICES = NOUNS["PinterestService"]
ME = "me"
WORKLOADS = 50
EDITS = 100
RESYNCED = 4_000
"""Workloads, each with four natives: 20,000 objects."""
READS = {"get", "list", "watch"}


def figures() -> Iterator[Figure]:
    with bare_plane() as (plane, _):
        yield from asyncio.run(_measured(plane))


class World(NamedTuple):
    hand: Client
    operator: Client
    loops: Loops

    @property
    def asked(self) -> int:
        """Requests of the operator, lists and watches left out: those it would have without any work."""
        return sum(
            count for each, count in self.operator.traffic.requests.items() if each.verb not in {"list", "watch"}
        )

    @property
    def written(self) -> int:
        return sum(count for each, count in self.operator.traffic.requests.items() if each.verb not in READS)

    async def quiet(self) -> None:
        passes = -1
        while passes != self.loops.planned.passes or self.loops.planned.waiting:
            passes = self.loops.planned.passes
            await asyncio.sleep(0.5)


@asynccontextmanager
async def _world(plane: ControlPlane) -> AsyncGenerator[World]:
    async with Client(plane.access(), "bench") as hand, Client(plane.access(), "operator") as operator:
        for crd in crds():
            await hand.apply(crd, CRDS, manager=ENGINE)
        await hand.apply({"metadata": {"name": ME, "labels": {PROJECT: ME}}}, NAMESPACES, manager=ENGINE)
        loops = Loops(operator, LAPTOP)
        running = asyncio.create_task(loops.run())
        # Kinds that were just made are served a little later.
        while not loops.view.complete or loops.view.unseen.keys() - NEIGHBOURS.keys():  # noqa: ASYNC110  (nobody else waits for that)
            await asyncio.sleep(0.1)
        yield World(hand, operator, loops)
        running.cancel()
        await asyncio.wait({running})


async def _measured(plane: ControlPlane) -> list[Figure]:
    keep_much()
    async with _world(plane) as here:
        await asyncio.gather(*(_write(here.hand, f"w{number}", "web:0") for number in range(WORKLOADS)))
        await here.quiet()
        made = here.asked / WORKLOADS
        settled = here.written
        for number in range(WORKLOADS):
            here.loops.planned.touch(Key(ME, f"w{number}"), Cause.AROUND)
        await here.quiet()
        writes = here.written - settled
        alone = await _edits(here)
        _fill(here.loops)
        # As the operator does when it has seen them all.
        keep_all()
        during, stall, own = await _resync(here)
    return [
        Figure("loop.requests", "API requests of ours for a new service, Events included", [made], unit=""),
        Figure("loop.settled", f"writes of {WORKLOADS} settled services that are all looked at again", [writes], 0, ""),
        *_spread("loop.edit", "edit of a resource to its native written", alone, 0.2, 1),
        *_spread("P15", f"the same while {RESYNCED * 5:,} objects resync", during, None, 1),
        Figure("P16", "longest stall of the event loop in that resync", [stall], 0.1),
        Figure("loop.own", "the most that it worked in one go, however busy the machine is", [own], 0.1),
    ]


def _spread(id_: str, what: str, seconds: Sequence[float], median: float | None, worst: float) -> list[Figure]:
    """The median, and what 99 of 100 do not exceed."""
    p99 = statistics.quantiles(seconds, n=100)[98]
    return [
        Figure(f"{id_}.p50", f"{what}, median", [statistics.median(seconds)], median),
        Figure(id_ if id_ == "P15" else f"{id_}.p99", f"{what}, P99 of {len(seconds)}", [p99], worst),
    ]


async def _write(hand: Client, name: str, image: str) -> None:
    body: Object = {"metadata": {"name": name, "namespace": ME}, "spec": {"image": image, "port": 80, "replicas": 0}}
    await hand.apply(body, SERVICES, manager=HAND)


async def _edits(here: World) -> list[float]:
    """One after the other, each until a watch of ours shows the Deployment of that image."""
    seen: dict[str, asyncio.Event] = {f"web:{number}": asyncio.Event() for number in range(1, EDITS + 1)}

    async def look() -> None:
        async with aclosing(here.hand.watch(DEPLOYMENTS, ME)) as events:
            async for event in events:
                image = event.object["spec"]["template"]["spec"]["containers"][0]["image"]
                if image in seen:
                    seen[image].set()

    looking = asyncio.create_task(look())
    await asyncio.sleep(0.5)
    took = []
    for number, (image, event) in enumerate(seen.items()):
        began = time.perf_counter()
        await _write(here.hand, f"w{number % WORKLOADS}", image)
        await event.wait()
        took.append(time.perf_counter() - began)
    looking.cancel()
    await asyncio.wait({looking})
    return took


async def _resync(here: World) -> tuple[list[float], float, float]:
    """All are looked at again and again for as long as the edits take."""
    longest, own = 0.0, 0.0
    before = here.loops.planned.passes

    async def touch() -> None:
        while True:
            for key in _KEYS:
                here.loops.planned.touch(key, Cause.AROUND)
            # Those at rest wait as well, and are not in the row.
            await asyncio.sleep(0.5)

    async def stall() -> None:
        nonlocal longest, own
        while True:
            began, worked = time.perf_counter(), time.thread_time()
            await asyncio.sleep(0.005)
            longest = max(longest, time.perf_counter() - began - 0.005)
            own = max(own, time.thread_time() - worked)

    tasks = [asyncio.create_task(touch()), asyncio.create_task(stall())]
    took = await _edits(here)
    for each in tasks:
        each.cancel()
    await asyncio.wait(tasks)
    assert here.loops.planned.passes - before > RESYNCED / 2, "there was no resync"
    return took, longest, own


_KEYS = [Key("others", f"r{number}") for number in range(RESYNCED)]


def _fill(loops: Loops) -> None:
    """Settled workloads, as if they had been watched: the API server has no part in looking at them again."""
    view: Any = loops.view
    for number, key in enumerate(_KEYS):
        metadata = {"name": key.name, "namespace": key.project, "uid": f"uid-{number}", "generation": 1}
        body = {"metadata": metadata, "kind": SERVICES.kind, "spec": {"image": "web:1", "port": 80, "replicas": 0}}
        owner: Any = msgspec.convert(body, PLANNED[SERVICES.kind])
        snapshot = Snapshot(owner, (), (), LAPTOP, loops.client.clock.now())
        while True:
            plan = PLANNERS[SERVICES.kind](snapshot)
            natives = tuple(msgspec.convert(each, Native) for each in plan.wanted)
            owner = msgspec.structs.replace(owner, status=plan.status)
            if len(natives) == len(snapshot.natives) and owner == snapshot.owner:
                break
            snapshot = snapshot._replace(natives=natives, owner=owner)
        view._owner_changed(Event(ADDED, owner))  # noqa: SLF001  (what its informers do)
        for each in natives:
            view._member_changed(view._natives, each.kind, Event(ADDED, each))  # noqa: SLF001

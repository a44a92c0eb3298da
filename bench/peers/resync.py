"""P15 and P16: edits while our operator plans 20,000 objects again and again, and the stalls of its event loop.

What is planned again is real: workloads and objects that the operator made on a real API server and watches. An ingress
class that is created or deleted concerns every service, so all of them are planned again and nothing is written.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from typing import NamedTuple

from bench.figures import PYTHON
from bench.peers.audit import writes
from bench.peers.checker import Service
from bench.peers.contenders import Contender
from bench.peers.convergence import SERVICES, USER, open_cluster, service_document, together, wait_until_started
from bench.peers.rig import Rig, RunningContender, running
from pincompute.kube.client import Client
from pincompute.kube.resource import DEPLOYMENTS, INGRESS_CLASSES
from pincompute.objects.content import Object

OBJECTS_PER_WORKLOAD = 6
"""The service itself, and five natives."""
EDITED_NAMESPACE, OTHERS_NAMESPACE = "edited", "others"
EDITED_WORKLOADS = 20
EDITS = 100
_TOUCH_INTERVAL_S = 0.5
_QUIET_S = 3.0
_POLL_S = 0.5
_TIMEOUT_S = 120.0

OPERATOR = Contender("operator", (PYTHON, "-m", "bench.peers.clients.our_operator", "KUBECONFIG"), speaks=True)


class Resync(NamedTuple):
    objects: int
    edit_seconds: list[float]
    stall_s: float
    passes: int
    load: float


def measure_resyncs(rig: Rig, objects: int, runs: int, edits: int = EDITS) -> list[Resync]:
    return asyncio.run(_measure_all(rig, max(objects // OBJECTS_PER_WORKLOAD, 1), runs, edits))


async def _measure_all(rig: Rig, workloads: int, runs: int, edits: int) -> list[Resync]:
    async with open_cluster(rig, EDITED_NAMESPACE, OTHERS_NAMESPACE) as client:
        with running(rig, OPERATOR) as process:
            await wait_until_started(rig, process)
            await _create_services(client, EDITED_NAMESPACE, EDITED_WORKLOADS)
            await _create_services(client, OTHERS_NAMESPACE, workloads)
            await _wait_until_quiet(rig, process)
        # A new process, as after a failover: it lists everything, and then excludes it from garbage collection.
        with running(rig, OPERATOR) as process:
            await wait_until_started(rig, process)
            await _wait_until_quiet(rig, process)
            return [await _measure(client, process, workloads, number, edits) for number in range(runs)]


async def _create_services(client: Client, namespace: str, count: int) -> None:
    services = [Service(f"s{number}", namespace, "web:0", 1) for number in range(count)]
    await together(client.create(SERVICES, service_document(each), manager=USER) for each in services)


async def _wait_until_quiet(rig: Rig, process: RunningContender) -> None:
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < _QUIET_S:
        await asyncio.sleep(_POLL_S)
        process.check()
        if writes(rig.audit.read(process.user)):
            quiet_since = time.monotonic()


async def _measure(client: Client, process: RunningContender, workloads: int, run: int, edits: int) -> Resync:
    before = await asyncio.to_thread(process.ask)
    async with _resync(client, run):
        took = await _edit_one_by_one(client, run, edits)
        after = await asyncio.to_thread(process.ask)
    passes = after["passes"] - before["passes"]
    if passes < workloads:
        raise SystemExit(f"the edits ended before a resync did: {passes} passes, {workloads} workloads")
    objects = workloads * OBJECTS_PER_WORKLOAD
    return Resync(objects, took, after["stall_s"], passes, os.getloadavg()[0])


@asynccontextmanager
async def _resync(client: Client, run: int) -> AsyncGenerator[None]:
    """Has all services planned again for as long as the block takes."""

    async def touch() -> None:
        number = 0
        while True:
            name = f"resync-{run}-{number}"
            await client.create(INGRESS_CLASSES, _ingress_class(name), manager=USER)
            await asyncio.sleep(_TOUCH_INTERVAL_S)
            await client.delete(INGRESS_CLASSES, name)
            number += 1

    touching = asyncio.create_task(touch())
    try:
        yield
    finally:
        touching.cancel()
        await asyncio.wait({touching})


def _ingress_class(name: str) -> Object:
    return {"metadata": {"name": name}, "spec": {"controller": "example.com/none"}}


async def _edit_one_by_one(client: Client, run: int, edits: int) -> list[float]:
    """Seconds from the start of each edit until a watch shows its Deployment with the new image."""
    seen: dict[str, asyncio.Event] = {f"web:{run}-{number}": asyncio.Event() for number in range(edits)}
    connected = asyncio.Event()

    async def follow() -> None:
        listed = await client.list(DEPLOYMENTS, EDITED_NAMESPACE)
        events = client.watch(DEPLOYMENTS, EDITED_NAMESPACE, resource_version=listed.resource_version)
        connected.set()
        async with aclosing(events):
            async for event in events:
                image = event.object["spec"]["template"]["spec"]["containers"][0]["image"]
                if image in seen:
                    seen[image].set()

    following = asyncio.create_task(follow())
    try:
        await connected.wait()
        return [
            await _edit(client, f"s{number % EDITED_WORKLOADS}", image, event)
            for number, (image, event) in enumerate(seen.items())
        ]
    finally:
        following.cancel()
        await asyncio.wait({following})


async def _edit(client: Client, name: str, image: str, seen: asyncio.Event) -> float:
    began = time.perf_counter()
    body = {"spec": {"image": image}}
    await client.patch(SERVICES, name, EDITED_NAMESPACE, body, style="merge", manager=USER)
    async with asyncio.timeout(_TIMEOUT_S):
        await seen.wait()
    return time.perf_counter() - began

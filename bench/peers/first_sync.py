"""P5 to P7: first sync of many pods from a real API server, the memory that they take, and a relist.

A relist is forced as an outage forces it: the API server is killed. The next one has no history, and answers the watch
that continues with 410 Gone.
"""

from __future__ import annotations

import asyncio
import os
import time
from typing import NamedTuple

from bench import accounting
from bench.cpu_affinity import CONTENDER_CPUS, pinned_to
from bench.peers.contenders import OUR_INFORMER, Contender
from bench.peers.convergence import USER
from bench.peers.pods import NAMESPACE, add_pod, fill_with_pods
from bench.peers.rig import Rig, RunningContender, running
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError
from pincompute.kube.resource import CONFIG_MAPS, PODS

_SETTLE_S = 1.0
"""Time after a sync in which a runtime returns memory."""
_TIMEOUT_S = 120.0
_POLL_S = 0.25


class FirstSync(NamedTuple):
    contender: str
    pods: int
    seconds: float
    cpu_s: float
    bytes_per_pod: float
    """Pss when settled less that before the sync."""
    peak: float
    """Peak of the first sync : settled, both without what the process took before it."""
    peak_again: float
    """The same in a relist; 0 where none was forced."""
    server_busy: float
    load: float


def fill(rig: Rig, pods: int) -> None:
    async def work() -> None:
        async with Client(rig.plane.access(USER), USER) as client:
            await fill_with_pods(client, pods)

    # Nothing is measured yet, so that the other core is free for this process.
    with pinned_to(CONTENDER_CPUS):
        asyncio.run(work())


def measure_first_sync(rig: Rig, contender: Contender, pods: int) -> FirstSync:
    """`pods` is the number in the cluster. Ours is also made to list again, for which a pod is added."""
    words = (str(pods),) if contender.name == "kubernetes" else ()
    with running(rig, contender, *words) as process:
        pid = process.process.pid
        process.hear()
        empty, empty_resident = accounting.pss_bytes(pid), accounting.resident_bytes(pid)
        accounting.reset_peak(pid)
        server_used, began = rig.server_used_s(), time.perf_counter()
        found = process.ask()
        busy = (rig.server_used_s() - server_used) / (time.perf_counter() - began)
        if found["pods"] != pods:
            raise SystemExit(f"{contender.name} has {found['pods']} pods; the cluster has {pods}")
        time.sleep(_SETTLE_S)
        settled = accounting.resident_bytes(pid) - empty_resident
        result = FirstSync(
            contender=contender.name,
            pods=pods,
            seconds=found["seconds"],
            cpu_s=found["cpu_s"],
            bytes_per_pod=(accounting.pss_bytes(pid) - empty) / pods,
            peak=(accounting.peak_bytes(pid) - empty_resident) / settled,
            peak_again=0.0,
            server_busy=busy,
            load=os.getloadavg()[0],
        )
        if contender is not OUR_INFORMER:
            return result
        accounting.reset_peak(pid)
        process.say()
        asyncio.run(_force_relist(rig, process, pods))
        return result._replace(peak_again=(accounting.peak_bytes(pid) - empty_resident) / settled)


async def _force_relist(rig: Rig, process: RunningContender, number: int) -> None:
    """Kills the API server, and waits until the contender has listed again; it hears of one pod more after it."""
    async with Client(rig.plane.access(USER), USER) as client:
        # A later revision than the contender has seen.
        marker = {"metadata": {"name": f"marker-{number}", "namespace": NAMESPACE}}
        await client.create(CONFIG_MAPS, marker, manager=USER)
        rig.audit.read(process.user)
        rig.plane.api_server.restart()
        end = time.monotonic() + _TIMEOUT_S
        while not any(_is_relist(each.verb, each.query, each.code) for each in rig.audit.read(process.user)):
            process.check()
            if time.monotonic() > end:
                raise SystemExit(f"{process.contender.name} did not list again within {_TIMEOUT_S:.0f} s")
            await asyncio.sleep(_POLL_S)
        await _add_pod_when_ready(client, number)
    process.hear()


def _is_relist(verb: str, query: str, code: int) -> bool:
    return code == 200 and (verb == "list" or "sendInitialEvents" in query)


async def _add_pod_when_ready(client: Client, number: int) -> None:
    while True:
        try:
            await client.list(PODS, "default")
        except ApiError:
            await asyncio.sleep(_POLL_S)
        else:
            await add_pod(client, number)
            return

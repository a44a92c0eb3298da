"""Measures runtime rollouts over many workloads; the first one fails its health gate.

`python scripts/measure_rollout.py KUBECONFIG 100 [ROLLS]`, on simulated nodes. The script plays the kubelet for the
sidecar that does not start, and watches every change of every pod.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from pincompute.api.names import ENGINE, WORKLOAD_LABEL
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.kube.kubeconfig import load_kubeconfig
from pincompute.kube.resource import PODS, Object
from pincompute.kube.watch import DELETED
from pincompute.objects.number_sets import scaled_value

BROKEN = "logs:broken"
FAILING_RUNTIME = 2
"""Number of the failing runtime."""
API = "pinterest.com/v1"
TIMEOUT_S = 600.0
WAVES = [5, 25, 100]
UNAVAILABLE = "50%"
KINDS = ("PinterestService", "PinterestService", "PinterestStatefulSet")


PeerRoll = Callable[[str, Mapping[str, int], Sequence[int]], Awaitable[None]]
"""Rolls all pods to an image, with the unavailable pods that each workload may have, in waves of workloads."""


class RolloutFigures(NamedTuple):
    workloads: int
    pods: int
    stopped_after: int
    """Workloads that the failing runtime had reached when its rollout stopped."""
    message: str
    back: float
    """Seconds until all workloads had the previous runtime again."""
    rolls: list[float]
    """Duration of each successful rollout in seconds, until the last pod is patched."""
    allowed: float
    """Longest duration allowed, at 1,000 pod changes per minute."""
    in_place: float
    """Share of pods that were updated in place by all rollouts."""
    broken: list[str]
    """Workloads with more unavailable pods at a time than allowed."""
    ideal: list[float]
    """Duration of as many rolls by the peer; empty without one."""


class FleetWatch:
    """State of all pods, by a watch."""

    def __init__(self, client: Client, project: str, workloads: dict[str, Object]) -> None:
        self.client = client
        self.project = project
        self.workloads = workloads
        self.pods: dict[str, Object] = {}
        self.broken: set[str] = set()
        self.watching = False
        self.patched = 0.0
        self._unavailable: defaultdict[str, set[str]] = defaultdict(set)

    async def watch(self) -> None:
        while True:
            async with aclosing(self.client.watch(PODS, self.project, labels=WORKLOAD_LABEL)) as events:
                async for event in events:
                    await self._handle_event(event.type, event.object)

    async def _handle_event(self, kind: str, pod: Object) -> None:
        name, workload = pod["metadata"]["name"], pod["metadata"]["labels"][WORKLOAD_LABEL]
        before = self.pods.pop(name, None)
        if kind == DELETED:
            self._unavailable[workload].discard(name)
            return
        self.pods[name] = pod
        if before and image(before) != image(pod):
            self.patched = time.monotonic()
        (self._unavailable[workload].discard if _ready(pod) else self._unavailable[workload].add)(name)
        owner = self.workloads.get(workload)
        if owner and self.watching and len(self._unavailable[workload]) > _max_unavailable(owner):
            self.broken.add(workload)
        if image(pod) == BROKEN and not _is_crashing(pod):
            await self._crash(pod)

    async def _crash(self, pod: Object) -> None:
        """Writes the status of a sidecar in a crash loop, as the kubelet would."""
        crashed: Object = {
            "name": "logs", "image": BROKEN, "imageID": "", "ready": False, "restartCount": 3, "started": False,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}},
        }  # fmt: skip
        conditions = [{"type": each, "status": "False"} for each in ("Ready", "ContainersReady")]
        others = [
            each for each in pod["status"].get("conditions", ()) if each["type"] not in {"Ready", "ContainersReady"}
        ]
        body = {"status": {"initContainerStatuses": [crashed], "conditions": [*others, *conditions]}}
        name = pod["metadata"]["name"]
        try:
            await self.client.patch(PODS, name, self.project, body, style="merge", manager=ENGINE, subresource="status")
        except NotFound:
            return

    def uids(self) -> set[str]:
        return {pod["metadata"]["uid"] for pod in self.pods.values()}


def image(pod: Object) -> str:
    return next((str(each["image"]) for each in pod["spec"].get("initContainers", ()) if each["name"] == "logs"), "")


def _ready(pod: Object) -> bool:
    status = pod.get("status", {}).get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in status)


def _is_crashing(pod: Object) -> bool:
    status = pod.get("status", {}).get("initContainerStatuses") or [{}]
    return "CrashLoopBackOff" in json.dumps(status[0].get("state", {}))


def _max_unavailable(owner: Object) -> int:
    spec = owner["spec"]
    return scaled_value(spec["unavailable"], spec["replicas"], up=True)


def random_workloads(count: int, project: str, seed: int = 1) -> dict[str, Object]:
    random_ = random.Random(seed)
    created = {}
    for number in range(count):
        spec = {
            "image": "web:1",
            "port": 8080,
            "replicas": random_.randint(1, 10),
            "unavailable": random_.choice((1, "25%")),
        }
        metadata = {"name": f"web-{number}", "namespace": project}
        created[f"web-{number}"] = {
            "apiVersion": API,
            "kind": random_.choice(KINDS),
            "metadata": metadata,
            "spec": spec,
        }
    return created


def rollout_runtimes(rolls: int) -> list[Object]:
    numbers = range(1, FAILING_RUNTIME + rolls + 1)
    images = {number: BROKEN if number == FAILING_RUNTIME else f"logs:{number}" for number in numbers}
    parts = [_document("PinterestSidecar", f"logs-{number}", {"image": image}) for number, image in images.items()]
    return [*parts, *(_document("Runtime", str(number), {"parts": [f"logs-{number}"]}) for number in images)]


def _document(kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


async def measure_rollouts(
    client: Client, count: int, rolls: int = 1, project: str = "me", *, peer: PeerRoll | None = None
) -> RolloutFigures:
    """Roll out runtimes over new workloads, and afterwards roll over the same pods by the peer, if there is one."""
    for resource in rollout_runtimes(rolls):
        await client.apply(resource, CUSTOM_RESOURCES[resource["kind"]], manager=ENGINE)
    await _start_roll(client, 1, {"waves": [100], "pauseSeconds": 0})
    created = random_workloads(count, project)
    for workload in created.values():
        await client.apply(workload, CUSTOM_RESOURCES[workload["kind"]], manager=ENGINE)
    await _wait_for_all(client, created, project, 1)
    async with _running_watch(FleetWatch(client, project, created)) as fleet:
        pods = sum(each["spec"]["replicas"] for each in created.values())
        await _wait_until(lambda: len(fleet.pods) == pods)
        before, fleet.watching = fleet.uids(), True
        await _start_roll(client, FAILING_RUNTIME, {"waves": [10, 100], "pauseSeconds": 0, "unavailable": "50%"})
        bad = await _wait_for_runtime(
            client, FAILING_RUNTIME, lambda status: status["conditions"][0]["reason"] == "RollUnhealthy"
        )
        began = time.monotonic()
        await _start_roll(client, FAILING_RUNTIME, {"stopped": "failing runtime of measure_rollout.py"})
        await _wait_for_all(client, created, project, 1)
        back = time.monotonic() - began
        took = [
            await _measure_roll(client, fleet, number)
            for number in range(FAILING_RUNTIME + 1, FAILING_RUNTIME + rolls + 1)
        ]
        in_place = len(before & fleet.uids()) / pods
        broken = sorted(fleet.broken)
        ideal = (
            [await _measure_peer_roll(peer, fleet, f"logs:ideal-{number}") for number in range(rolls)] if peer else []
        )
        return RolloutFigures(
            workloads=count,
            pods=pods,
            stopped_after=bad["progress"]["reached"],
            message=bad["conditions"][0]["message"],
            back=round(back, 1),
            rolls=took,
            allowed=round(1.25 * pods / 1000 * 60, 1),
            in_place=in_place,
            broken=broken,
            ideal=ideal,
        )


@asynccontextmanager
async def _running_watch(fleet: FleetWatch) -> AsyncIterator[FleetWatch]:
    watching = asyncio.create_task(fleet.watch())
    try:
        yield fleet
    finally:
        watching.cancel()
        await asyncio.wait({watching})


async def _measure_roll(client: Client, fleet: FleetWatch, number: int) -> float:
    began = time.monotonic()
    await _start_roll(client, number, {"waves": WAVES, "pauseSeconds": 0, "unavailable": UNAVAILABLE})
    await _wait_for_runtime(client, number, lambda status: bool(status.get("done")))
    await _wait_until(lambda: all(image(each) == f"logs:{number}" for each in fleet.pods.values()))
    return round(fleet.patched - began, 1)


async def _measure_peer_roll(peer: PeerRoll, fleet: FleetWatch, image_: str) -> float:
    """Roll with the budgets of a runtime rollout: the smaller one of the workload's and the roll's."""
    budgets = {
        name: min(_max_unavailable(owner), max(1, scaled_value(UNAVAILABLE, owner["spec"]["replicas"], up=False)))
        for name, owner in fleet.workloads.items()
    }
    began = time.monotonic()
    await peer(image_, budgets, WAVES)
    await _wait_until(lambda: all(image(each) == image_ for each in fleet.pods.values()))
    return round(fleet.patched - began, 1)


async def _start_roll(client: Client, number: int, roll: Object) -> None:
    body = {"spec": {"roll": roll}}
    await client.patch(CUSTOM_RESOURCES["Runtime"], str(number), "", body, style="merge", manager=ENGINE)


async def _wait_for_runtime(client: Client, number: int, holds: Callable[[Object], bool]) -> Object:
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            # The server ends each watch after some minutes.
            async with aclosing(client.watch(CUSTOM_RESOURCES["Runtime"], fields=f"metadata.name={number}")) as events:
                async for event in events:
                    status: Object = event.object.get("status", {})
                    if status.get("conditions") and holds(status):
                        return status


async def _wait_for_all(client: Client, created: dict[str, Object], project: str, runtime: int) -> None:
    """Waits until every workload is ready with the runtime."""

    async def all_ready() -> bool:
        kinds = set(KINDS)
        listings = [await client.list(CUSTOM_RESOURCES[kind], project) for kind in sorted(kinds)]
        found = [each for listing in listings for each in listing.items if each["metadata"]["name"] in created]
        return len(found) == len(created) and all(_is_ready_with(each, runtime) for each in found)

    async with asyncio.timeout(TIMEOUT_S):
        while not await all_ready():  # noqa: ASYNC110  (no single event covers two kinds)
            await asyncio.sleep(0.3)


def _is_ready_with(workload: Object, runtime: int) -> bool:
    status = workload.get("status", {})
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions", ()))
    return ready and status.get("runtime", 0) == runtime


async def _wait_until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not holds():  # noqa: ASYNC110  (the condition reads state of another task)
            await asyncio.sleep(0.1)


async def _main(kubeconfig: Path, count: int, rolls: int = 1) -> Any:
    async with Client(load_kubeconfig(kubeconfig), agent="roll") as client:
        return (await measure_rollouts(client, count, rolls))._asdict()


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_main(Path(sys.argv[1]), *map(int, sys.argv[2:]))), indent=2))

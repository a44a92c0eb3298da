"""Runtimes rolled over many workloads, the first fails its gate: `python scripts/roll.py KUBECONFIG 100 [ROLLS]`.

On simulated nodes, where this plays the kubelet for the part that does not start. Every change of every pod is watched.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from pincompute.api.names import ENGINE, WORKLOAD
from pincompute.controller.resources import NOUNS
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.kube.kubeconfig import load
from pincompute.kube.resource import PODS, Object
from pincompute.kube.watch import DELETED
from pincompute.objects.numbers import share_of

BROKEN = "logs:broken"
FAILING = 2
"""The number of the runtime that fails."""
API = "pinterest.com/v1"
PATIENCE = 600.0
KINDS = ("PinterestService", "PinterestService", "PinterestStatefulSet")


class Figures(NamedTuple):
    workloads: int
    pods: int
    stopped_after: int
    """Workloads that the failing runtime had reached when it stood still."""
    message: str
    back: float
    """Seconds until everybody had the runtime before again."""
    rolls: list[float]
    """Of each good roll: seconds from its start to the last pod patched."""
    allowed: float
    """The most that it may take, where 1,000 pods a minute may change."""
    in_place: float
    """Share of pods that all of them reached where they are."""
    broken: list[str]
    """Workloads of which more pods were away at a time than may be."""


class Fleet:
    """What is seen of it, by a watch on every pod."""

    def __init__(self, client: Client, project: str, workloads: dict[str, Object]) -> None:
        self.client = client
        self.project = project
        self.workloads = workloads
        self.pods: dict[str, Object] = {}
        self.broken: set[str] = set()
        self.watching = False
        self.patched = 0.0
        self._away: defaultdict[str, set[str]] = defaultdict(set)

    async def watch(self) -> None:
        while True:
            async with aclosing(self.client.watch(PODS, self.project, labels=WORKLOAD)) as events:
                async for event in events:
                    await self._seen(event.type, event.object)

    async def _seen(self, kind: str, pod: Object) -> None:
        name, whose = pod["metadata"]["name"], pod["metadata"]["labels"][WORKLOAD]
        before = self.pods.pop(name, None)
        if kind == DELETED:
            self._away[whose].discard(name)
            return
        self.pods[name] = pod
        if before and image(before) != image(pod):
            self.patched = time.monotonic()
        (self._away[whose].discard if _ready(pod) else self._away[whose].add)(name)
        owner = self.workloads.get(whose)
        if owner and self.watching and len(self._away[whose]) > _allowed(owner):
            self.broken.add(whose)
        if image(pod) == BROKEN and not _crashes(pod):
            await self._crash(pod)

    async def _crash(self, pod: Object) -> None:
        """As a kubelet would say it of a part that does not start."""
        crashed: Object = {
            "name": "logs", "image": BROKEN, "imageID": "", "ready": False, "restartCount": 3, "started": False,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}},
        }  # fmt: skip
        conditions = [{"type": each, "status": "False"} for each in ("Ready", "ContainersReady")]
        kept = [
            each for each in pod["status"].get("conditions", ()) if each["type"] not in {"Ready", "ContainersReady"}
        ]
        body = {"status": {"initContainerStatuses": [crashed], "conditions": [*kept, *conditions]}}
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
    said = pod.get("status", {}).get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in said)


def _crashes(pod: Object) -> bool:
    said = pod.get("status", {}).get("initContainerStatuses") or [{}]
    return "CrashLoopBackOff" in json.dumps(said[0].get("state", {}))


def _allowed(owner: Object) -> int:
    spec = owner["spec"]
    return share_of(spec["unavailable"], spec["replicas"], up=True)


def workloads(count: int, project: str, seed: int = 1) -> dict[str, Object]:
    draw = random.Random(seed)
    made = {}
    for number in range(count):
        spec = {"image": "web:1", "port": 8080, "replicas": draw.randint(1, 10), "unavailable": draw.choice((1, "25%"))}
        metadata = {"name": f"web-{number}", "namespace": project}
        made[f"web-{number}"] = {"apiVersion": API, "kind": draw.choice(KINDS), "metadata": metadata, "spec": spec}
    return made


def runtimes(rolls: int) -> list[Object]:
    numbers = range(1, FAILING + rolls + 1)
    images = {number: BROKEN if number == FAILING else f"logs:{number}" for number in numbers}
    parts = [_noun("PinterestSidecar", f"logs-{number}", {"image": image}) for number, image in images.items()]
    return [*parts, *(_noun("Runtime", str(number), {"parts": [f"logs-{number}"]}) for number in images)]


def _noun(kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


async def measure(client: Client, count: int, rolls: int = 1, project: str = "me") -> Figures:
    for each in runtimes(rolls):
        await client.apply(each, NOUNS[each["kind"]], manager=ENGINE)
    await _roll(client, 1, {"waves": [100], "pauseSeconds": 0})
    made = workloads(count, project)
    for each in made.values():
        await client.apply(each, NOUNS[each["kind"]], manager=ENGINE)
    await _all(client, made, project, 1)
    async with _watched(Fleet(client, project, made)) as fleet:
        pods = sum(each["spec"]["replicas"] for each in made.values())
        await _until(lambda: len(fleet.pods) == pods)
        before, fleet.watching = fleet.uids(), True
        await _roll(client, FAILING, {"waves": [10, 100], "pauseSeconds": 0, "unavailable": "50%"})
        bad = await _runtime(client, FAILING, lambda said: said["conditions"][0]["reason"] == "RollUnhealthy")
        began = time.monotonic()
        await _roll(client, FAILING, {"stopped": "the script: it fails"})
        await _all(client, made, project, 1)
        back = time.monotonic() - began
        took = [await _rolled(client, fleet, number) for number in range(FAILING + 1, FAILING + rolls + 1)]
        return Figures(
            workloads=count,
            pods=pods,
            stopped_after=bad["progress"]["reached"],
            message=bad["conditions"][0]["message"],
            back=round(back, 1),
            rolls=took,
            allowed=round(1.25 * pods / 1000 * 60, 1),
            in_place=len(before & fleet.uids()) / pods,
            broken=sorted(fleet.broken),
        )


@asynccontextmanager
async def _watched(fleet: Fleet) -> AsyncIterator[Fleet]:
    watching = asyncio.create_task(fleet.watch())
    try:
        yield fleet
    finally:
        watching.cancel()
        await asyncio.wait({watching})


async def _rolled(client: Client, fleet: Fleet, number: int) -> float:
    began = time.monotonic()
    await _roll(client, number, {"waves": [5, 25, 100], "pauseSeconds": 0, "unavailable": "50%"})
    await _runtime(client, number, lambda said: bool(said.get("done")))
    await _until(lambda: all(image(each) == f"logs:{number}" for each in fleet.pods.values()))
    return round(fleet.patched - began, 1)


async def _roll(client: Client, number: int, roll: Object) -> None:
    body = {"spec": {"roll": roll}}
    await client.patch(NOUNS["Runtime"], str(number), "", body, style="merge", manager=ENGINE)


async def _runtime(client: Client, number: int, holds: Callable[[Object], bool]) -> Object:
    async with asyncio.timeout(PATIENCE):
        while True:
            # The server ends each watch after a while.
            async with aclosing(client.watch(NOUNS["Runtime"], fields=f"metadata.name={number}")) as events:
                async for event in events:
                    said: Object = event.object.get("status", {})
                    if said.get("conditions") and holds(said):
                        return said


async def _all(client: Client, made: dict[str, Object], project: str, runtime: int) -> None:
    """Every workload has it, and is well."""

    async def well() -> bool:
        kinds = set(KINDS)
        listings = [await client.list(NOUNS[kind], project) for kind in sorted(kinds)]
        there = [each for listing in listings for each in listing.items if each["metadata"]["name"] in made]
        return len(there) == len(made) and all(_has(each, runtime) for each in there)

    async with asyncio.timeout(PATIENCE):
        while not await well():  # noqa: ASYNC110  (two kinds, and no event tells of both)
            await asyncio.sleep(0.3)


def _has(workload: Object, runtime: int) -> bool:
    said = workload.get("status", {})
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in said.get("conditions", ()))
    return ready and said.get("runtime", 0) == runtime


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110  (what is watched is not this one's own)
            await asyncio.sleep(0.1)


async def _main(kubeconfig: Path, count: int, rolls: int = 1) -> Any:
    async with Client(load(kubeconfig), agent="roll") as client:
        return (await measure(client, count, rolls))._asdict()


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_main(Path(sys.argv[1]), *map(int, sys.argv[2:]))), indent=2))

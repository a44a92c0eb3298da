"""From Enter to a pod that has its node: a new `pin` each time, by the desk, on a platform that is warm."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from bench.figures import PIN, Figure, run
from pincompute.api.names import WORKLOAD
from pincompute.base.settings import setting
from pincompute.controller.resources import NOUNS
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load
from pincompute.kube.resource import DEPLOYMENTS, PODS, Resource

NAME = "bench-enter"
PROJECT = "me"
DEPLOYS = 100
WARM = 5
PATIENCE = 60.0
FILE = """\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {{name: {name}}}
spec: {{image: "hello:dev", port: 8080, simulated: true}}
"""
SERVICES = NOUNS["PinterestService"]
STAGES = ("the cluster has it", "it has become a Deployment", "that has a pod", "that has a node")
"""What comes one after the other; the first has `pin` itself in it, and the desk."""


def figures() -> Iterator[Figure]:
    run(PIN, "up", "--name", NAME, "--simulated", "--nodes", "3")
    try:
        taken = asyncio.run(_measured())
    finally:
        run(PIN, "down", "--name", NAME, "--purge")
    whole = [each[-1] for each in taken]
    p99 = statistics.quantiles(whole, n=100)[98]
    yield Figure("U3", f"Enter to pod scheduled, P99 of {DEPLOYS}", [p99], 1)
    yield Figure("enter", "the same, median", whole)
    for number, stage in enumerate(STAGES):
        spent = [each[number] - (each[number - 1] if number else 0.0) for each in taken]
        yield Figure(f"enter.{number + 1}", f"of it, until {stage}: median", spent)


class Sight:
    """When each thing of a workload was first seen."""

    def __init__(self) -> None:
        self.times: defaultdict[str, list[float]] = defaultdict(list)
        self.news = asyncio.Condition()

    async def watch(self, client: Client, resource: Resource, stage: int) -> None:
        async for event in client.watch(resource, PROJECT):
            seen = event.object
            name = seen["metadata"]["name"] if resource == SERVICES else seen["metadata"]["labels"].get(WORKLOAD, "")
            self._note(name, stage)
            if resource == PODS and seen["spec"].get("nodeName"):
                self._note(name, stage + 1)
            async with self.news:
                self.news.notify_all()

    def _note(self, name: str, stage: int) -> None:
        """News of one thing may come before news of what it was made by."""
        times = self.times[name]
        times.extend([time.perf_counter()] * (stage + 1 - len(times)))

    async def scheduled(self, name: str) -> list[float]:
        async with asyncio.timeout(PATIENCE), self.news:
            await self.news.wait_for(lambda: len(self.times[name]) == len(STAGES))
        return self.times[name]


@asynccontextmanager
async def _watched(client: Client) -> AsyncGenerator[Sight]:
    sight = Sight()
    followed = ((SERVICES, 0), (DEPLOYMENTS, 1), (PODS, 2))
    watches = [asyncio.create_task(sight.watch(client, resource, stage)) for resource, stage in followed]
    yield sight
    for each in watches:
        each.cancel()
        with suppress(asyncio.CancelledError):
            await each


async def _measured() -> list[list[float]]:
    kubeconfig = Path(setting("state")) / NAME / "kubeconfig"
    async with Client(load(kubeconfig), agent="bench") as client, _watched(client) as sight:
        with tempfile.TemporaryDirectory() as folder:
            return [await _one(sight, Path(folder), f"w{number}") for number in range(WARM + DEPLOYS)][WARM:]


async def _one(sight: Sight, folder: Path, name: str) -> list[float]:
    """Seconds until each stage."""
    file = folder / f"{name}.yaml"
    file.write_text(FILE.format(name=name))
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        PIN, "deploy", str(file), "--no-wait", "--name", NAME, stdout=asyncio.subprocess.DEVNULL
    )
    times = await sight.scheduled(name)
    assert await process.wait() == 0
    return [each - began for each in times]

"""Time from `pin deploy` to a scheduled pod, through the desk, on a warm platform."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from bench.figures import PIN, Figure, run_command
from pincompute.api.names import WORKLOAD_LABEL
from pincompute.base.settings import setting_value
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load_kubeconfig
from pincompute.kube.resource import DEPLOYMENTS, PODS, Resource

NAME = "bench-enter"
PROJECT = "me"
DEPLOYS = 100
WARM_UP_RUNS = 5
TIMEOUT_S = 60.0
DOCUMENT = """\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {{name: {name}}}
spec: {{image: "hello:dev", port: 8080, simulated: true}}
"""
SERVICES = CUSTOM_RESOURCES["PinterestService"]
STAGES = ("resource created", "Deployment created", "pod created", "pod scheduled")
"""Stages in order. The first includes `pin` itself and the desk."""


def figures() -> Iterator[Figure]:
    run_command(PIN, "up", "--name", NAME, "--simulated", "--nodes", "3")
    try:
        taken = asyncio.run(_measure_deploys())
    finally:
        run_command(PIN, "down", "--name", NAME, "--purge")
    whole = [each[-1] for each in taken]
    p99 = statistics.quantiles(whole, n=100)[98]
    yield Figure("U3", f"pin deploy to pod scheduled, P99 of {DEPLOYS}", [p99], 1)
    yield Figure("enter", "the same, median", whole)
    for number, stage in enumerate(STAGES):
        spent = [each[number] - (each[number - 1] if number else 0.0) for each in taken]
        yield Figure(f"enter.{number + 1}", f"stage until {stage}, median", spent)


class StageTimes:
    """Times at which the stages of each workload were first observed."""

    def __init__(self) -> None:
        self.times: defaultdict[str, list[float]] = defaultdict(list)
        self.changed = asyncio.Condition()

    async def watch(self, client: Client, resource: Resource, stage: int) -> None:
        async for event in client.watch(resource, PROJECT):
            found = event.object
            name = (
                found["metadata"]["name"]
                if resource == SERVICES
                else found["metadata"]["labels"].get(WORKLOAD_LABEL, "")
            )
            self._record(name, stage)
            if resource == PODS and found["spec"].get("nodeName"):
                self._record(name, stage + 1)
            async with self.changed:
                self.changed.notify_all()

    def _record(self, name: str, stage: int) -> None:
        """Records a stage. Separate watches can report an object before its owner: missing stages get the same time."""
        times = self.times[name]
        times.extend([time.perf_counter()] * (stage + 1 - len(times)))

    async def scheduled(self, name: str) -> list[float]:
        async with asyncio.timeout(TIMEOUT_S), self.changed:
            await self.changed.wait_for(lambda: len(self.times[name]) == len(STAGES))
        return self.times[name]


@asynccontextmanager
async def _watched(client: Client) -> AsyncGenerator[StageTimes]:
    stage_times = StageTimes()
    followed = ((SERVICES, 0), (DEPLOYMENTS, 1), (PODS, 2))
    watches = [asyncio.create_task(stage_times.watch(client, resource, stage)) for resource, stage in followed]
    yield stage_times
    for task in watches:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _measure_deploys() -> list[list[float]]:
    kubeconfig = Path(setting_value("state")) / NAME / "kubeconfig"
    async with Client(load_kubeconfig(kubeconfig), agent="bench") as client, _watched(client) as stage_times:
        with tempfile.TemporaryDirectory() as folder:
            return [
                await _deploy_once(stage_times, Path(folder), f"w{number}") for number in range(WARM_UP_RUNS + DEPLOYS)
            ][WARM_UP_RUNS:]


async def _deploy_once(stage_times: StageTimes, folder: Path, name: str) -> list[float]:
    """Deploys one workload; returns the seconds until each stage."""
    file = folder / f"{name}.yaml"
    file.write_text(DOCUMENT.format(name=name))
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        PIN, "deploy", str(file), "--no-wait", "--name", NAME, stdout=asyncio.subprocess.DEVNULL
    )
    times = await stage_times.scheduled(name)
    assert await process.wait() == 0
    return [each - began for each in times]

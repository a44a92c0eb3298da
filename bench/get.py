"""`pin get` as a new process each time: compared with `kubectl get`, and over many workloads by desk and kubeconfig."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.support.control_plane import ControlPlane

from bench.cli import run_quietly
from bench.desk import DESK_TOKEN, QUOTA_PROJECT, SERVICES, running_desk
from bench.empty_control_plane import empty_control_plane
from bench.figures import PIN, Figure, measure_seconds, paired_ratio
from pincompute.api.names import API_VERSION, CLI_MANAGER
from pincompute.base.platform_context import Context, write_context
from pincompute.base.progress import Progress
from pincompute.base.settings import setting_value
from pincompute.engine.build import build_engine
from pincompute.kube.client import Client
from pincompute.objects.content import Object

WORKLOADS = 10_000
CONCURRENCY = 32
RUNS = 5


def figures() -> Iterator[Figure]:
    with empty_control_plane() as (plane, folder):
        kubectl_ratio, by_desk, direct = asyncio.run(_time_get(plane, folder))
    yield kubectl_ratio
    yield Figure("get.desk", f"pin get over {WORKLOADS:,} workloads, by the desk", by_desk, 1)
    yield Figure("get.cluster", "the same by a kubeconfig", direct, 1)


async def _time_get(plane: ControlPlane, folder: Path) -> tuple[Figure, list[float], list[float]]:
    async with Client(plane.access(), "bench") as client, running_desk(plane, folder, client) as desk:
        context = Context(name="main", desk=desk.address, token=DESK_TOKEN, kubeconfig="")
        write_context(folder / "state", context)
        await _fill(client, 0, 1)
        kubectl_ratio = await asyncio.to_thread(_kubectl_ratio, plane, folder)
        await _fill(client, 1, WORKLOADS)
        option_sets = ((), ("--kubeconfig", plane.kubeconfig(folder)))
        # The first run of each fills the caches.
        found = [
            [await asyncio.to_thread(_get, folder, WORKLOADS, *options) for _ in range(RUNS + 1)][1:]
            for options in option_sets
        ]
        return kubectl_ratio, found[0], found[1]


def _kubectl_ratio(plane: ControlPlane, folder: Path) -> Figure:
    """`pin get` compared with the kubectl program itself, without `pin kubectl`."""
    kubectl = (str(build_engine(Path(setting_value("cache")), Progress()).kubernetes), "kubectl")
    words = (
        *kubectl,
        "--kubeconfig",
        str(plane.kubeconfig(folder)),
        "get",
        SERVICES.plural,
        "--namespace",
        QUOTA_PROJECT,
    )
    return paired_ratio(
        "U4",
        "pin get : kubectl get, one workload",
        lambda: _get(folder, 1),
        lambda: run_quietly(*words),
        runs=20,
        bar=1.5,
    )


async def _fill(client: Client, first: int, end: int) -> None:
    slots = asyncio.Semaphore(CONCURRENCY)

    async def create(number: int) -> None:
        metadata = {"name": f"w{number}", "namespace": QUOTA_PROJECT}
        spec = {"image": "hello:dev", "port": 8080}
        whole: Object = {"apiVersion": API_VERSION, "kind": SERVICES.kind, "metadata": metadata, "spec": spec}
        async with slots:
            await client.create(SERVICES, whole, manager=CLI_MANAGER)

    await asyncio.gather(*map(create, range(first, end)))


def _get(folder: Path, many: int, *options: object) -> float:
    words = [PIN, "get", "--project", QUOTA_PROJECT, *map(str, options)]
    variables = {**os.environ, "PIN_STATE": str(folder / "state")}

    def get() -> None:
        done = subprocess.run(words, env=variables, stdout=subprocess.PIPE, check=True)
        assert done.stdout.count(b"\n") == many + 1

    return measure_seconds(get)

"""`pin get`, each time a new `pin`: beside Kubernetes' own, and over many workloads by a warm desk and a kubeconfig."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.control_plane import ControlPlane

from bench.desk import BOUNDED, SERVICES, TOKEN, desk_before
from bench.figures import PIN, Figure, paired, timed
from bench.hand import quiet
from bench.plane import bare_plane
from pincompute.api.names import API_VERSION, HAND
from pincompute.base.context import Context, write_context
from pincompute.base.settings import setting
from pincompute.engine.build import build
from pincompute.engine.progress import Progress
from pincompute.kube.client import Client
from pincompute.objects.content import Object

MANY = 10_000
AT_ONCE = 32
RUNS = 5


def figures() -> Iterator[Figure]:
    with bare_plane() as (plane, folder):
        beside, by_desk, direct = asyncio.run(_measured(plane, folder))
    yield beside
    yield Figure("get.desk", f"pin get over {MANY:,} workloads, by the desk", by_desk, 1)
    yield Figure("get.cluster", "the same by a kubeconfig", direct, 1)


async def _measured(plane: ControlPlane, folder: Path) -> tuple[Figure, list[float], list[float]]:
    async with Client(plane.access(), "bench") as hand, desk_before(plane, folder, hand) as desk:
        context = Context(name="main", desk=desk.address, token=TOKEN, kubeconfig="")
        write_context(folder / "state", context)
        await _fill(hand, 0, 1)
        beside = await asyncio.to_thread(_beside, plane, folder)
        await _fill(hand, 1, MANY)
        ways = ((), ("--kubeconfig", plane.kubeconfig(folder)))
        # The first of each warms what is remembered.
        found = [[await asyncio.to_thread(_get, folder, MANY, *way) for _ in range(RUNS + 1)][1:] for way in ways]
        return beside, found[0], found[1]


def _beside(plane: ControlPlane, folder: Path) -> Figure:
    """Kubernetes' own, which no `pin` begins."""
    kubectl = (str(build(Path(setting("cache")), Progress()).kubernetes), "kubectl")
    words = (*kubectl, "--kubeconfig", str(plane.kubeconfig(folder)), "get", SERVICES.plural, "--namespace", BOUNDED)
    return paired(
        "U4",
        "pin get : kubectl get, one workload",
        lambda: _get(folder, 1),
        lambda: quiet(*words),
        runs=20,
        bar=1.5,
    )


async def _fill(hand: Client, first: int, end: int) -> None:
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        metadata = {"name": f"w{number}", "namespace": BOUNDED}
        spec = {"image": "hello:dev", "port": 8080}
        whole: Object = {"apiVersion": API_VERSION, "kind": SERVICES.kind, "metadata": metadata, "spec": spec}
        async with turns:
            await hand.create(SERVICES, whole, manager=HAND)

    await asyncio.gather(*map(one, range(first, end)))


def _get(folder: Path, many: int, *way: object) -> float:
    words = [PIN, "get", "--project", BOUNDED, *map(str, way)]
    variables = {**os.environ, "PIN_STATE": str(folder / "state")}

    def get() -> None:
        done = subprocess.run(words, env=variables, stdout=subprocess.PIPE, check=True)
        assert done.stdout.count(b"\n") == many + 1

    return timed(get)

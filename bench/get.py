"""`pin get` over many workloads, each time a new `pin`: by a desk that is warm, and by a kubeconfig."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from tests.control_plane import ControlPlane

from bench.desk import BOUNDED, SERVICES, TOKEN, desk_before
from bench.figures import PIN, Figure, timed
from bench.plane import bare_plane
from pincompute.api.names import API_VERSION, HAND
from pincompute.base.context import Context, write_context
from pincompute.kube.client import Client
from pincompute.objects.content import Object

MANY = 10_000
AT_ONCE = 32
RUNS = 5


def figures() -> Iterator[Figure]:
    with bare_plane() as (plane, folder):
        by_desk, direct = asyncio.run(_measured(plane, folder))
    yield Figure("get.desk", f"pin get over {MANY:,} workloads, by the desk", by_desk, 1)
    yield Figure("get.cluster", "the same by a kubeconfig", direct, 1)


async def _measured(plane: ControlPlane, folder: Path) -> tuple[list[float], list[float]]:
    async with Client(plane.access(), "bench") as hand, desk_before(plane, folder, hand) as desk:
        await _fill(hand)
        address = urlsplit(desk.url)
        context = Context(name="main", desk=f"http://{address.netloc}", token=TOKEN, kubeconfig="")
        write_context(folder / "state", context)
        ways = ((), ("--kubeconfig", plane.kubeconfig(folder)))
        # The first of each warms what is remembered.
        found = [[await asyncio.to_thread(_get, folder, *way) for _ in range(RUNS + 1)][1:] for way in ways]
        return found[0], found[1]


async def _fill(hand: Client) -> None:
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        metadata = {"name": f"w{number}", "namespace": BOUNDED}
        spec = {"image": "hello:dev", "port": 8080}
        whole: Object = {"apiVersion": API_VERSION, "kind": SERVICES.kind, "metadata": metadata, "spec": spec}
        async with turns:
            await hand.create(SERVICES, whole, manager=HAND)

    await asyncio.gather(*map(one, range(MANY)))


def _get(folder: Path, *way: object) -> float:
    words = [PIN, "get", "--project", BOUNDED, *map(str, way)]
    variables = {**os.environ, "PIN_STATE": str(folder / "state")}

    def get() -> None:
        done = subprocess.run(words, env=variables, stdout=subprocess.PIPE, check=True)
        assert done.stdout.count(b"\n") == MANY + 1

    return timed(get)

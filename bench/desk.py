"""Submissions taken on record by a desk, and plain creates of the same objects, in turn.

Each has an API server of its own: a desk would follow the creates, too, and so slow what it is held against. Either has
on disk what it acknowledges, and the same cores.
"""

from __future__ import annotations

import asyncio
import os
import socket
import statistics
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from tests.control_plane import ControlPlane

from bench.cores import CONTENDERS, SERVERS, on
from bench.figures import PIN, Figure
from bench.plane import bare_plane
from pincompute.api.manifests import crds
from pincompute.api.names import API_VERSION, ENGINE, HAND, PROJECT
from pincompute.cli.asking import Asker, Unanswered
from pincompute.controller.resources import NOUNS
from pincompute.kube.client import Client
from pincompute.kube.resource import CRDS, NAMESPACES
from pincompute.objects.content import Object

SERVICES = NOUNS["PinterestService"]
BOUNDED = "bounded"
SUBMISSIONS = f"/v1/projects/{BOUNDED}/submissions"
EACH = 200
"""Of either sort in one run."""
AT_ONCE = 16
RUNS = 5
TOKEN = "the bench"


FILE = """\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {name: NAME}
spec: {image: "hello:dev", port: 8080}
"""
"""As people write it."""


class Pace(NamedTuple):
    rate: float
    """A second."""
    p99: float


def figures() -> list[Figure]:
    with on(SERVERS), bare_plane(durable=True) as (plane, folder), bare_plane(durable=True) as (bare, _):
        return asyncio.run(_measured(plane, folder, bare))


async def _measured(plane: ControlPlane, folder: Path, bare: ControlPlane) -> list[Figure]:
    async with (
        Client(plane.access(), "bench") as hand,
        Client(bare.access(), "bench") as other,
        desk_before(plane, folder, hand) as desk,
    ):
        await _furnished(other)
        pairs: list[tuple[Pace, Pace]] = []
        whole: list[float] = []
        worked: list[float] = []
        for run in range(RUNS + 1):
            before = desk.worked()
            ours = await _pace(run, desk.submit)
            whole.append(await desk.delivered(hand, (run + 1) * EACH))
            worked.append((desk.worked() - before) / EACH * 1000)
            with on(CONTENDERS):
                pairs.append((ours, await _pace(run, _creates(other))))
        ours, peers = zip(*pairs[1:], strict=True)
    return [
        Figure(
            "P8.1", "submissions taken : plain creates, per second", [a.rate / b.rate for a, b in pairs[1:]], 0.7, "x",
            statistics.median(each.rate for each in ours), statistics.median(each.rate for each in peers),
            at_least=True,
        ),
        Figure(
            "P8.2", f"the same, P99 of {AT_ONCE} at once", [a.p99 / b.p99 for a, b in pairs[1:]], 1.6, "x",
            statistics.median(each.p99 for each in ours), statistics.median(each.p99 for each in peers),
        ),
        Figure("desk.delivered", f"{EACH} taken submissions, until the cluster has the last of them", whole[1:]),
        Figure("desk.work", "processor time of the desk for one, delivery included", worked[1:], unit="ms"),
    ]  # fmt: skip


class Desk(NamedTuple):
    asker: Asker
    address: str
    process: int

    def worked(self) -> float:
        """Seconds of processors."""
        spent = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(spent[11]) + int(spent[12])) / os.sysconf("SC_CLK_TCK")

    async def submit(self, name: str) -> None:
        async with self.asker.ask("POST", SUBMISSIONS, FILE.replace("NAME", name).encode()) as answer:
            said = await answer.read()
            assert answer.status in {201, 202}, said

    async def delivered(self, hand: Client, all_: int) -> float:
        began = time.perf_counter()
        while len((await hand.list(SERVICES, BOUNDED)).items) < all_:  # noqa: ASYNC110  (how fast is not what is measured)
            await asyncio.sleep(0.2)
        return time.perf_counter() - began


@asynccontextmanager
async def desk_before(
    plane: ControlPlane, folder: Path, hand: Client, *options: str, members: Object | None = None
) -> AsyncGenerator[Desk]:
    """A process of its own, as on every platform; and a project whose quota is counted, and suffices."""
    await _furnished(hand)
    spec: Object = {
        "owner": "ann",
        "review": "open",
        "quota": {"on-demand": {"pods": 1_000_000}},
        "members": members or {},
    }
    project: Object = {"apiVersion": API_VERSION, "kind": "Project", "metadata": {"name": BOUNDED}, "spec": spec}
    await hand.apply(project, NOUNS["Project"], manager=HAND)
    (folder / "token").write_text(TOKEN)
    port = _free_port()
    address = f"http://127.0.0.1:{port}"
    # As a hand asks, so that who asks takes little from whom is asked.
    asker = Asker(address, {"Authorization": f"Bearer {TOKEN}", "Prefer": "respond-async"})
    words = (
        PIN, "desk", "--kubeconfig", str(plane.kubeconfig(folder)), "--listen", f"127.0.0.1:{port}",
        "--token-file", str(folder / "token"), "--database", str(folder / "desk.db"), "--folder", str(folder), *options,
    )  # fmt: skip
    with on(CONTENDERS):
        process = await asyncio.create_subprocess_exec(*words, stderr=asyncio.subprocess.DEVNULL)
    try:
        async with asker:
            await _answers(asker)
            yield Desk(asker, address, process.pid)
    finally:
        process.terminate()
        await process.wait()


async def _furnished(hand: Client) -> None:
    for crd in crds():
        await hand.apply(crd, CRDS, manager=ENGINE)
    metadata = {"name": BOUNDED, "labels": {PROJECT: BOUNDED}}
    await hand.apply({"metadata": metadata}, NAMESPACES, manager=ENGINE)


async def _answers(asker: Asker) -> None:
    while True:
        try:
            async with asker.ask("GET", "/healthz"):
                return
        except Unanswered:
            await asyncio.sleep(0.1)


async def _pace(run: int, work: Callable[[str], Awaitable[object]]) -> Pace:
    """Of many, some at once."""
    hands = asyncio.Semaphore(AT_ONCE)
    took = []

    async def one(number: int) -> None:
        async with hands:
            began = time.perf_counter()
            await work(f"w{run}-{number}")
            took.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*map(one, range(EACH)))
    return Pace(EACH / (time.perf_counter() - began), statistics.quantiles(took, n=100)[98])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _creates(hand: Client) -> Callable[[str], Awaitable[object]]:
    return lambda name: hand.create(SERVICES, service(name), manager=HAND)


def service(name: str) -> Object:
    metadata = {"name": name, "namespace": BOUNDED}
    spec = {"image": "hello:dev", "port": 8080}
    return {"apiVersion": API_VERSION, "kind": SERVICES.kind, "metadata": metadata, "spec": spec}

"""Submissions to a desk, compared with plain creates of the same objects at an API server.

Each has its own API server, because a desk would also watch the created objects and slow the creates down. Both write
to disk before they acknowledge, and use the same cores.
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

from tests.support.control_plane import ControlPlane

from bench.cpu_affinity import CONTENDER_CPUS, SERVER_CPUS, pinned_to
from bench.empty_control_plane import empty_control_plane
from bench.figures import PIN, Figure
from pincompute.api.manifests import crds
from pincompute.api.names import API_VERSION, CLI_MANAGER, ENGINE, PROJECT_LABEL
from pincompute.cli.http_client import HttpClient, TransportError
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.client import Client
from pincompute.kube.resource import CRDS, NAMESPACES
from pincompute.objects.content import Object

SERVICES = CUSTOM_RESOURCES["PinterestService"]
QUOTA_PROJECT = "bounded"
SUBMISSIONS = f"/v1/projects/{QUOTA_PROJECT}/submissions"
REQUESTS_PER_RUN = 200
"""Submissions, and creates, in one run."""
CONCURRENCY = 16
RUNS = 5
DESK_TOKEN = "the bench"


DOCUMENT = """\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {name: NAME}
spec: {image: "hello:dev", port: 8080}
"""
"""A short document, as users write it."""


class Throughput(NamedTuple):
    per_second: float
    p99_s: float


def figures() -> list[Figure]:
    with (
        pinned_to(SERVER_CPUS),
        empty_control_plane(durable=True) as (plane, folder),
        empty_control_plane(durable=True) as (bare, _),
    ):
        return asyncio.run(_compare_with_creates(plane, folder, bare))


async def _compare_with_creates(plane: ControlPlane, folder: Path, bare: ControlPlane) -> list[Figure]:
    async with (
        Client(plane.access(), "bench") as client,
        Client(bare.access(), "bench") as other,
        running_desk(plane, folder, client) as desk,
    ):
        await _create_project_namespace(other)
        pairs: list[tuple[Throughput, Throughput]] = []
        whole: list[float] = []
        worked: list[float] = []
        for run in range(RUNS + 1):
            before = desk.worked()
            ours = await _measure_throughput(run, desk.submit)
            whole.append(await desk.delivered(client, (run + 1) * REQUESTS_PER_RUN))
            worked.append((desk.worked() - before) / REQUESTS_PER_RUN * 1000)
            with pinned_to(CONTENDER_CPUS):
                pairs.append((ours, await _measure_throughput(run, _create_with(other))))
        ours, peers = zip(*pairs[1:], strict=True)
    return [
        Figure(
            "P8.1", "submissions accepted : plain creates, per second",
            [a.per_second / b.per_second for a, b in pairs[1:]], 0.7, "x",
            statistics.median(each.per_second for each in ours),
            statistics.median(each.per_second for each in peers),
            higher_is_better=True,
        ),
        Figure(
            "P8.2", f"the same, P99 with {CONCURRENCY} concurrent requests",
            [a.p99_s / b.p99_s for a, b in pairs[1:]], 1.6, "x",
            statistics.median(each.p99_s for each in ours), statistics.median(each.p99_s for each in peers),
        ),
        Figure(
            "desk.delivered", f"{REQUESTS_PER_RUN} accepted submissions, until the last is in the cluster", whole[1:]
        ),
        Figure("desk.work", "processor time of the desk per submission, delivery included", worked[1:], unit="ms"),
    ]  # fmt: skip


class Desk(NamedTuple):
    http_client: HttpClient
    address: str
    process: int

    def worked(self) -> float:
        """Processor time of the desk in seconds."""
        spent = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(spent[11]) + int(spent[12])) / os.sysconf("SC_CLK_TCK")

    async def submit(self, name: str) -> None:
        async with self.http_client.request("POST", SUBMISSIONS, DOCUMENT.replace("NAME", name).encode()) as response:
            body = await response.read()
            assert response.status in {201, 202}, body

    async def delivered(self, client: Client, all_: int) -> float:
        began = time.perf_counter()
        while len((await client.list(SERVICES, QUOTA_PROJECT)).items) < all_:  # noqa: ASYNC110  (how fast is not what is measured)
            await asyncio.sleep(0.2)
        return time.perf_counter() - began


@asynccontextmanager
async def running_desk(
    plane: ControlPlane, folder: Path, client: Client, *options: str, members: Object | None = None
) -> AsyncGenerator[Desk]:
    """Starts a desk as a process, and creates a project with a sufficient quota, so that quota is counted."""
    await _create_project_namespace(client)
    spec: Object = {
        "owner": "ann",
        "review": "open",
        "quota": {"on-demand": {"pods": 1_000_000}},
        "members": members or {},
    }
    project: Object = {"apiVersion": API_VERSION, "kind": "Project", "metadata": {"name": QUOTA_PROJECT}, "spec": spec}
    await client.apply(project, CUSTOM_RESOURCES["Project"], manager=CLI_MANAGER)
    (folder / "token").write_text(DESK_TOKEN)
    port = _free_port()
    address = f"http://127.0.0.1:{port}"
    # The CLI's client, which needs little processor time of the shared cores.
    http_client = HttpClient(address, {"Authorization": f"Bearer {DESK_TOKEN}", "Prefer": "respond-async"})
    words = (
        PIN, "desk", "--kubeconfig", str(plane.kubeconfig(folder)), "--listen", f"127.0.0.1:{port}",
        "--token-file", str(folder / "token"), "--database", str(folder / "desk.db"), "--folder", str(folder), *options,
    )  # fmt: skip
    with pinned_to(CONTENDER_CPUS):
        process = await asyncio.create_subprocess_exec(*words, stderr=asyncio.subprocess.DEVNULL)
    try:
        async with http_client:
            await _wait_until_healthy(http_client)
            yield Desk(http_client, address, process.pid)
    finally:
        process.terminate()
        await process.wait()


async def _create_project_namespace(client: Client) -> None:
    for crd in crds():
        await client.apply(crd, CRDS, manager=ENGINE)
    metadata = {"name": QUOTA_PROJECT, "labels": {PROJECT_LABEL: QUOTA_PROJECT}}
    await client.apply({"metadata": metadata}, NAMESPACES, manager=ENGINE)


async def _wait_until_healthy(http_client: HttpClient) -> None:
    while True:
        try:
            async with http_client.request("GET", "/healthz"):
                return
        except TransportError:
            await asyncio.sleep(0.1)


async def _measure_throughput(run: int, work: Callable[[str], Awaitable[object]]) -> Throughput:
    """Runs many calls of `work`, some concurrently."""
    slots = asyncio.Semaphore(CONCURRENCY)
    took = []

    async def call(number: int) -> None:
        async with slots:
            began = time.perf_counter()
            await work(f"w{run}-{number}")
            took.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*map(call, range(REQUESTS_PER_RUN)))
    return Throughput(REQUESTS_PER_RUN / (time.perf_counter() - began), statistics.quantiles(took, n=100)[98])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _create_with(client: Client) -> Callable[[str], Awaitable[object]]:
    return lambda name: client.create(SERVICES, service(name), manager=CLI_MANAGER)


def service(name: str) -> Object:
    metadata = {"name": name, "namespace": QUOTA_PROJECT}
    spec = {"image": "hello:dev", "port": 8080}
    return {"apiVersion": API_VERSION, "kind": SERVICES.kind, "metadata": metadata, "spec": spec}

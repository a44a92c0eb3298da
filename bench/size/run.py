"""Fills clusters of growing size, changes workloads in them at Pinterest's rate, and saves what was measured."""

from __future__ import annotations

import asyncio
import os
import re
import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from bench.figures import PIN, Figure, run_command
from bench.measured_page import save_measurements
from bench.provenance import commit, machine, today
from bench.size.churn import Change, DeploymentWatch, Disturbance, change_repeatedly, pair_interval_s
from bench.size.fleet import PROBES, Fleet, bare_deployment, pods_of, projects
from bench.size.parts import PartSampler, RequestCounter, Store, kill_part, read_store
from pincompute.api.names import CLI_MANAGER
from pincompute.base.settings import setting_value
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.kube.kubeconfig import load_kubeconfig
from pincompute.kube.resource import DEPLOYMENTS
from pincompute.objects.content import Object

NAME = "bench-size"
FRACTIONS = (Fraction(1, 8), Fraction(1, 4), Fraction(1, 2), Fraction(1))
CHURN_MINUTES = 10.0
MEASURED_FILE = Path(__file__).parent / "measured.json"
_BASE_GIB, _WHOLE_GIB = 4, 40
"""Memory of all processes: without pods, and in addition at full size."""
_MAX_CONCURRENT_WRITES = 16
_FILL_TIMEOUT_S = 3_600.0
_PROGRESS_S = 10.0
_OURS = ("operator", "desk", "insight")


class Measured(NamedTuple):
    """One fraction of the size."""

    fraction: str
    nodes: int
    pods: int
    workloads: int
    nodes_ready_s: float
    fill_s: float
    """From the first workload created until the last one was ready, or its tasks were done."""
    fill_cpu_s: dict[str, float]
    fill_requests: dict[str, int]
    churn_minutes: float
    churn_cpu_s: dict[str, float]
    churn_requests: dict[str, int]
    peak_bytes: dict[str, int]
    store: Store
    changes: list[Change]
    disturbances: dict[str, float]
    """Seconds since the changes began, by name."""
    load: float

    def seconds(self, *, ours: bool) -> list[float]:
        return [each.seconds for each in self.changes if each.ours is ours]


def run_fractions(fractions: Sequence[Fraction] = (), minutes: float = CHURN_MINUTES) -> Iterator[Figure]:
    """Measures one fraction after the other; the page is written when all are done, and only of whole minutes."""
    measured = []
    for fraction in fractions or affordable(FRACTIONS):
        found = _measure(Fleet(fraction), minutes)
        measured.append(found)
        yield from figures_of(found)
    if minutes >= CHURN_MINUTES:
        from bench.size.page import PAGE

        save(measured)
        PAGE.write()
    else:
        _say(f"not saved: only changes of at least {CHURN_MINUTES:.0f} minutes are")


def affordable(fractions: Sequence[Fraction]) -> list[Fraction]:
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    found = [each for each in fractions if _BASE_GIB + _WHOLE_GIB * each <= gib]
    _say(f"{gib:.0f} GiB of memory: measuring {', '.join(map(str, found))} of 3,000 nodes and 120,000 pods")
    return found


def figures_of(found: Measured) -> Iterator[Figure]:
    of = f"{found.fraction} of 3,000 nodes and 120,000 pods"
    ours, bare = (percentile(found.seconds(ours=each), 99) for each in (True, False))
    name = f"P11.{found.fraction.replace('/', '-')}"
    yield Figure(name, f"{of}: change to pods Running, P99", [ours], 25, aim=5, load=found.load)
    label = f"{of}: the same, ours : bare Deployments"
    yield Figure(f"{name}.ratio", label, [ours / bare], 1.5, "x", ours, bare, aim=1.2, load=found.load)
    used, all_used = sum(found.churn_cpu_s.get(each, 0) for each in _OURS), sum(found.churn_cpu_s.values())
    yield Figure(f"U8.{found.fraction.replace('/', '-')}", f"{of}: our share of CPU", [used / all_used], None, "of 1")


def percentile(values: Sequence[float], percent: int) -> float:
    """Value below which this share of the values lies; they must not be empty."""
    if len(values) == 1:
        return values[0]
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def _measure(fleet: Fleet, minutes: float) -> Measured:
    run_command(PIN, "down", "--name", NAME, "--purge", check=False)
    _say(f"{fleet.fraction}: {fleet.nodes:,} nodes, {fleet.pods:,} pods")
    try:
        output = run_command(PIN, "up", "--name", NAME, "--simulated", "--no-runtime", "--nodes", str(fleet.nodes))
        ready = re.search(r"nodes ready in (\d+\.?\d*) s", output)
        return asyncio.run(_fill_and_change(fleet, minutes, float(ready[1]) if ready else 0.0))
    finally:
        run_command(PIN, "down", "--name", NAME, "--purge")


async def _fill_and_change(fleet: Fleet, minutes: float, nodes_ready_s: float) -> Measured:
    kubeconfig = Path(setting_value("state")) / NAME / "kubeconfig"
    async with Client(load_kubeconfig(kubeconfig), agent="bench") as client:
        requests, sampler = RequestCounter(NAME), PartSampler(NAME)
        sampler.sample()
        sampler.cpu_s.clear()
        async with _in_background(sampler.run()):
            began = time.monotonic()
            workloads = await _fill(client, fleet)
            fill_s, fill_cpu_s, fill_requests = (
                time.monotonic() - began,
                dict(sampler.cpu_s),
                requests.since_last_read(),
            )
            watch = DeploymentWatch(client)
            async with _in_background(watch.run()):
                await _create_bare_deployments(client, watch)
                sampler.cpu_s.clear()
                churn_requests: Counter[str] = Counter()

                async def kill_operator() -> None:
                    churn_requests.update(requests.since_last_read(restarts=True))
                    kill_part(NAME, "operator")

                async def kill_api_server() -> None:
                    kill_part(NAME, "kube-apiserver")

                seconds = minutes * 60
                disturb = (
                    Disturbance(seconds / 3, "operator killed", kill_operator),
                    Disturbance(seconds * 2 / 3, "API server killed", kill_api_server),
                )
                interval_s = pair_interval_s(float(fleet.fraction))
                _say(f"{minutes:g} minutes of changes, a pair every {interval_s:.1f} s")
                changes = await change_repeatedly(client, watch, interval_s, seconds, disturb)
            churn_requests.update(requests.since_last_read())
            return Measured(
                fraction=str(fleet.fraction),
                nodes=fleet.nodes,
                pods=fleet.pods,
                workloads=len(workloads),
                nodes_ready_s=nodes_ready_s,
                fill_s=fill_s,
                fill_cpu_s=fill_cpu_s,
                fill_requests=dict(fill_requests.most_common()),
                churn_minutes=minutes,
                churn_cpu_s=dict(sampler.cpu_s),
                churn_requests=dict(churn_requests.most_common()),
                peak_bytes=sampler.peak_bytes,
                store=await read_store(client),
                changes=changes,
                disturbances={each.name: each.at_s for each in disturb},
                load=os.getloadavg()[0],
            )


async def _fill(client: Client, fleet: Fleet) -> list[Object]:
    """Creates all workloads, and returns when the last one is ready or done."""
    for project in projects():
        await client.apply(project, CUSTOM_RESOURCES["Project"], manager=CLI_MANAGER)
    workloads = list(fleet.workloads())
    slots = asyncio.Semaphore(_MAX_CONCURRENT_WRITES)

    async def create(workload: Object) -> None:
        async with slots:
            while True:
                try:
                    await client.apply(workload, CUSTOM_RESOURCES[workload["kind"]], manager=CLI_MANAGER)
                except NotFound:  # The namespace of the new project does not exist yet.
                    await asyncio.sleep(0.2)
                else:
                    return

    await asyncio.gather(*map(create, workloads))
    _say(f"{len(workloads):,} workloads created")
    pods = {(each["kind"], each["metadata"]["name"]): pods_of(each, fleet.nodes) for each in workloads}
    said = time.monotonic()
    async with asyncio.timeout(_FILL_TIMEOUT_S):
        while waiting := pods.keys() - await _settled(client):
            if time.monotonic() - said > _PROGRESS_S:
                said = time.monotonic()
                there = sum(pods.values()) - sum(pods[each] for each in waiting)
                _say(f"{there:,} of {sum(pods.values()):,} pods; {len(waiting):,} workloads are not ready")
            await asyncio.sleep(1)
    return workloads


async def _settled(client: Client) -> set[tuple[str, str]]:
    """Workloads that are ready, are done, or run by a schedule."""
    kinds = ("PinterestService", "PinterestStatefulSet", "PinterestJobSet", "PinterestDaemon", "PinterestCronJob")
    found = set()
    for kind in kinds:
        for each in (await client.list(CUSTOM_RESOURCES[kind])).items:
            conditions = {one["type"]: one["status"] for one in each.get("status", {}).get("conditions", ())}
            if "True" in {conditions.get("Ready"), conditions.get("Succeeded")} or kind == "PinterestCronJob":
                found.add((kind, each["metadata"]["name"]))
    return found


async def _create_bare_deployments(client: Client, watch: DeploymentWatch) -> None:
    for number in range(PROBES):
        probe, name = f"probe-{number}", f"bare-{number}"
        await watch.rolled_out(probe, "none:1")
        await client.create(DEPLOYMENTS, bare_deployment(watch.deployment(probe), name), manager=CLI_MANAGER)
        await watch.rolled_out(name, "none:1")


@asynccontextmanager
async def _in_background(work: Any) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def save(measured: Sequence[Measured], file: Path = MEASURED_FILE) -> None:
    sizes = [{**each._asdict(), "store": each.store._asdict()} for each in measured]
    whole = {"commit": commit(), "date": today(), "machine": machine(), "sizes": sizes}
    save_measurements(whole, file)


def _say(line: str) -> None:
    print(f"size: {line}", flush=True)

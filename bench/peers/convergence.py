"""P1 to P4: services created and edited at once, until everything that they become is as expected.

Each contender has a tenth of a core, so that its own work decides and not the API server's.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncGenerator, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from bench.peers.audit import AuditedRequest, duration_s, per_workload, writes
from bench.peers.checker import SERVICE, Service, differences
from bench.peers.contenders import Contender
from bench.peers.rig import Rig, RunningContender, running
from pincompute.api.manifests import crds
from pincompute.api.names import CLUSTER_FACTS_CONFIGMAP, ENGINE, PROJECT_LABEL, SYSTEM_NAMESPACE
from pincompute.controller.resources import CUSTOM_RESOURCES, WORKLOAD_NATIVES
from pincompute.kube.client import Client
from pincompute.kube.resource import CONFIG_MAPS, CRDS, NAMESPACES
from pincompute.objects.content import Object

NAMESPACE = "bench"
SHARE_OF_CORE = 0.1
PHASES = ("cold", "edit-1", "edit-2")
SETTLED_S = 5.0
USER = "bench"
SERVICES = CUSTOM_RESOURCES[SERVICE]
COMPARED = {
    SERVICE: SERVICES,
    **{
        kind: WORKLOAD_NATIVES[kind]
        for kind in ("ServiceAccount", "ConfigMap", "Service", "Deployment", "PodDisruptionBudget", "Ingress")
    },
}
FACTS = {"name": "main", "domain": "localhost", "port": "8080", "nodes": "real"}
"""The cluster as our operator is told; the peers have the domain and the port as constants."""
QUIET_S = 1.5
_POLL_S = 0.25
_TIMEOUT_S = 300.0
_MAX_CONCURRENT_WRITES = 16

Cluster = dict[str, list[Object]]


class Phase(NamedTuple):
    """One contender in one phase. All figures are of all workloads together."""

    seconds: float
    """From the arrival of its first write to the response to its last one."""
    cpu_s: float
    requests: int
    writes: int
    requests_by_verb: dict[str, int]
    """By verb, resource and, where it is an error, status: `update pinterestservices/status 409`."""
    server_cpu_s: float
    server_busy: float
    """Share of the API server's core that was used meanwhile."""
    load: float


class Convergence(NamedTuple):
    contender: str
    workloads: int
    phases: dict[str, Phase]
    settled_writes: int
    settled_requests: int


def measure_convergence(rig: Rig, contender: Contender, workloads: int) -> tuple[Convergence, Cluster]:
    """Measures a contender in an empty namespace; returns also what it made there."""
    return asyncio.run(_measure(rig, contender, workloads))


async def _measure(rig: Rig, contender: Contender, workloads: int) -> tuple[Convergence, Cluster]:
    async with open_cluster(rig) as client:
        with running(rig, contender) as process:
            found = await _Run(rig, client, process, workloads).measure()
            made = await _read(client)
        await _delete_all(client)
    return found, made


@asynccontextmanager
async def open_cluster(rig: Rig, *namespaces: str) -> AsyncGenerator[Client]:
    """A client, for a cluster with our kinds, with what our operator reads at its start, and with the namespaces."""
    async with Client(rig.plane.access(USER), USER) as client:
        for crd in crds():
            await client.apply(crd, CRDS, manager=ENGINE)
        for name in (SYSTEM_NAMESPACE, NAMESPACE, *namespaces):
            await client.apply(
                {"metadata": {"name": name, "labels": {PROJECT_LABEL: name}}}, NAMESPACES, manager=ENGINE
            )
        facts = {"metadata": {"name": CLUSTER_FACTS_CONFIGMAP, "namespace": SYSTEM_NAMESPACE}, "data": FACTS}
        await client.apply(facts, CONFIG_MAPS, manager=ENGINE)
        yield client


class _Run:
    def __init__(self, rig: Rig, client: Client, process: RunningContender, workloads: int) -> None:
        self._rig = rig
        self._client = client
        self._process = process
        self._services = [Service(f"w{number}", NAMESPACE, "web:1", 1) for number in range(workloads)]

    async def measure(self) -> Convergence:
        await wait_until_started(self._rig, self._process)
        self._process.group.limit_cores(SHARE_OF_CORE)
        phases = {name: await self._phase(name) for name in PHASES}
        self._process.group.limit_cores(1)
        await asyncio.sleep(SETTLED_S)
        settled = self._rig.audit.read(self._process.user)
        name = self._process.contender.name
        return Convergence(name, len(self._services), phases, len(writes(settled)), len(per_workload(settled)))

    async def _phase(self, name: str) -> Phase:
        number = PHASES.index(name) + 1
        self._services = [each._replace(image=f"web:{number}", revision=number) for each in self._services]
        self._rig.audit.read(self._process.user)
        used, server_used, began = self._process.group.used_s(), self._rig.server_used_s(), time.time()
        write = _create if name == PHASES[0] else _edit
        await together(write(self._client, each) for each in self._services)
        requests, samples = await self._wait_until_converged()
        written = writes(requests)
        last = max(each.ended for each in written).timestamp()
        ended, server_used_then = next((each for each in samples if each[0] >= last), samples[-1])
        return Phase(
            seconds=duration_s(written),
            cpu_s=self._process.group.used_s() - used,
            requests=len(per_workload(requests)),
            writes=len(written),
            requests_by_verb=dict(Counter(map(_described, per_workload(requests)))),
            server_cpu_s=server_used_then - server_used,
            server_busy=(server_used_then - server_used) / (ended - began),
            load=os.getloadavg()[0],
        )

    async def _wait_until_converged(self) -> tuple[list[AuditedRequest], list[tuple[float, float]]]:
        """All requests of the contender until it had been quiet for a while, and the use of the API server's core."""
        requests: list[AuditedRequest] = []
        samples: list[tuple[float, float]] = []
        different = ["no write"]
        quiet_since = began = time.monotonic()
        while time.monotonic() - began < _TIMEOUT_S:
            await asyncio.sleep(_POLL_S)
            self._process.check()
            samples.append((time.time(), self._rig.server_used_s()))
            new = self._rig.audit.read(self._process.user)
            requests += new
            if writes(new):
                quiet_since = time.monotonic()
            elif requests and time.monotonic() - quiet_since > QUIET_S:
                different = differences(self._services, await _read(self._client))
                if not different:
                    return requests, samples
                quiet_since = time.monotonic()
        listed = "\n".join(different[:10])
        raise SystemExit(f"{self._process.contender.name} did not converge within {_TIMEOUT_S:.0f} s:\n{listed}")


def _described(request: AuditedRequest) -> str:
    described = f"{request.verb} {request.resource}"
    return described if request.code < 400 else f"{described} {request.code}"


async def wait_until_started(rig: Rig, process: RunningContender) -> None:
    """Returns when the contender watches services and has sent nothing else for a while."""
    watches, quiet_since = False, time.monotonic()
    while not watches or time.monotonic() - quiet_since < QUIET_S:
        await asyncio.sleep(_POLL_S)
        process.check()
        new = [each for each in rig.audit.read(process.user) if each.code < 400 and each.resource != "leases"]
        watches |= any(each.started and each.resource == SERVICES.plural for each in new)
        if new:
            quiet_since = time.monotonic()


async def together(works: Iterable[Coroutine[Any, Any, object]]) -> None:
    slots = asyncio.Semaphore(_MAX_CONCURRENT_WRITES)

    async def one(work: Coroutine[Any, Any, object]) -> None:
        async with slots:
            await work

    async with asyncio.TaskGroup() as tasks:
        for each in works:
            tasks.create_task(one(each))


async def _create(client: Client, service: Service) -> None:
    await client.create(SERVICES, service_document(service), manager=USER)


def service_document(service: Service) -> Object:
    """A service of no replicas, as nothing here runs pods."""
    spec = {"image": service.image, "port": 8080, "replicas": 0}
    metadata = {"name": service.name, "namespace": service.namespace}
    return {"apiVersion": SERVICES.api_version, "kind": SERVICE, "metadata": metadata, "spec": spec}


async def _edit(client: Client, service: Service) -> None:
    body = {"spec": {"image": service.image}}
    await client.patch(SERVICES, service.name, service.namespace, body, style="merge", manager=USER)


async def _read(client: Client) -> Cluster:
    return {kind: (await client.list(resource, NAMESPACE)).items for kind, resource in COMPARED.items()}


async def _delete_all(client: Client) -> None:
    for resource in COMPARED.values():
        await client.raw("DELETE", resource.path(NAMESPACE))

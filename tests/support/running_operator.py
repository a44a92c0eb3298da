"""A real control plane with a running operator, for tests of the reconcile loop."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any, NamedTuple

import msgspec

from control_plane import ControlPlane
from pincompute.api.documents import read_documents
from pincompute.api.names import CLI_MANAGER, WORKLOAD_LABEL
from pincompute.api.service import PinterestService, ServiceSpec
from pincompute.api.validation import parse_resource
from pincompute.api.workload_summary import WorkloadSummary
from pincompute.base.clock import Clock
from pincompute.controller import resources
from pincompute.controller.pass_history import PassHistory, PassRecord
from pincompute.controller.passes import Key
from pincompute.controller.resources import CUSTOM_RESOURCES, OPTIONAL_NATIVES, RECONCILED_KINDS
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.resource import DEPLOYMENTS, INGRESSES, SERVICES, Resource
from pincompute.kube.retrying_transport import RequestLabels
from pincompute.kube.watch import Event
from pincompute.operator.manager import ControllerManager
from pincompute.planning.snapshot import Cluster
from pincompute.platforms.kubernetes.workloads import WorkloadClient
from workloads import HELLO, cluster_client, new_project

TEST_CLUSTER = Cluster(name="test", domain="localhost", port=8080)
NATIVES = (SERVICES, DEPLOYMENTS, INGRESSES)
WATCHED_RESOURCES = (
    *(CUSTOM_RESOURCES[kind] for kind in RECONCILED_KINDS),
    *(each for kind, each in resources.WORKLOAD_NATIVES.items() if kind not in OPTIONAL_NATIVES),
)
"""Resources that the operator watches in every cluster."""


class CountingClient(Client):
    """Counts the applies of the operator."""

    applies = 0

    async def apply(self, *args: Any, **keywords: Any) -> dict[str, Any]:
        self.applies += 1
        return await super().apply(*args, **keywords)


class OperatorActivity:
    """Wakes a test after every request and every pass of an operator, so that no test has to sleep."""

    def __init__(self, manager: ControllerManager) -> None:
        self._happened = asyncio.Event()
        manager.loop.history = _NotifyingHistory(self._happened)
        manager.client.request_stats.requests = _NotifyingCounter(self._happened)

    async def wait_for(self, predicate: Callable[[], bool]) -> None:
        """Returns once the predicate holds. It is evaluated after each request and each pass."""
        async with asyncio.timeout(60):
            while not predicate():
                self._happened.clear()
                await self._happened.wait()


class _NotifyingHistory(PassHistory):
    def __init__(self, happened: asyncio.Event) -> None:
        super().__init__()
        self._happened = happened

    def add(self, key: Key, record: PassRecord) -> None:
        super().add(key, record)
        self._happened.set()


class _NotifyingCounter(Counter[RequestLabels]):
    def __init__(self, happened: asyncio.Event) -> None:
        super().__init__()
        self._happened = happened

    def __setitem__(self, labels: RequestLabels, count: int) -> None:
        super().__setitem__(labels, count)
        self._happened.set()


class OperatedCluster(NamedTuple):
    """A cluster with a running operator, and a project of its own for the test."""

    client: Client
    operator: CountingClient
    workloads: WorkloadClient
    manager: ControllerManager
    project: str
    activity: OperatorActivity

    async def write(self, **spec: Any) -> WorkloadSummary:
        workload = parse_resource(read_documents(HELLO)[0], self.project)
        spec = {**msgspec.to_builtins(workload.spec), **spec}
        changed = PinterestService(metadata=workload.metadata, spec=msgspec.convert(spec, ServiceSpec))
        return await self.workloads.write(changed, manager=CLI_MANAGER)

    async def natives(self) -> list[dict[str, Any]]:
        return [await self.client.get(each, "hello", self.project) for each in NATIVES]

    async def wait_for_reason(self, reason: str, revision: int) -> WorkloadSummary:
        async with asyncio.timeout(60), aclosing(self.workloads.follow(self.project, "hello")) as summaries:
            async for summary in summaries:
                if summary.reason == reason and summary.revision >= revision and summary.message:
                    return summary
        raise AssertionError("the workload was deleted")

    def watch_service(self) -> AsyncGenerator[Event[Any]]:
        return self.client.watch(SERVICES, self.project, fields="metadata.name=hello")

    async def wait_settled(self) -> None:
        """Waits until the operator has seen every write and runs no more passes."""
        before: object = None
        async with asyncio.timeout(60):
            while (
                before != (now := (await self._wait_cached(), self.manager.loop.pass_count))
                or self.manager.loop.queue_length
            ):
                before = now
                await asyncio.sleep(0.3)

    async def _wait_cached(self) -> dict[str, int]:
        """Waits until the operator's cache includes the last write of each kind; returns those resourceVersions."""
        watched = [each for each in WATCHED_RESOURCES if each.kind not in self.manager.cache.unwatchable_kinds]
        revisions = dict(
            zip((each.kind for each in watched), await asyncio.gather(*map(self._last_revision, watched)), strict=True)
        )
        while not all(self.manager.cache.includes(kind, last) for kind, last in revisions.items()):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        return revisions

    async def _last_revision(self, resource: Resource) -> int:
        selector = "" if resource.kind in RECONCILED_KINDS else WORKLOAD_LABEL
        items = (await self.client.list(resource, self.project if resource.namespaced else "", labels=selector)).items
        return max((int(each["metadata"]["resourceVersion"]) for each in items), default=0)


@asynccontextmanager
async def operated_cluster(
    plane: ControlPlane, access: Access | None = None, clock: Clock | None = None
) -> AsyncGenerator[OperatedCluster]:
    """`access` gives the operator other permissions, or another route to the API server."""
    operator_client = CountingClient(access or plane.access(), agent="operator", clock=clock)
    async with cluster_client(plane) as client, operator_client as operator:
        await _delete_all_resources(client)
        project = await new_project(client)
        manager = ControllerManager(operator, TEST_CLUSTER)
        activity = OperatorActivity(manager)
        running = asyncio.create_task(manager.run())
        operated = OperatedCluster(client, operator, WorkloadClient(client), manager, project, activity)
        try:
            yield operated
        finally:
            await _delete_all_resources(client)
            # A request that is cancelled in flight would close its connection only after the event loop has ended.
            await operated.wait_settled()
            running.cancel()
            await asyncio.wait({running})


async def _delete_all_resources(client: Client) -> None:
    """Deletes all our resources. The control plane is shared, and other tests may have left some."""
    for kind in RECONCILED_KINDS:
        for item in (await client.list(CUSTOM_RESOURCES[kind])).items:
            metadata = item["metadata"]
            await client.delete(CUSTOM_RESOURCES[kind], metadata["name"], metadata.get("namespace", ""))

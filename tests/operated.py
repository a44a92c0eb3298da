"""A cluster with a running operator, and one who looks on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from typing import Any, NamedTuple

import msgspec

from control_plane import ControlPlane
from pincompute.api.admission import admit
from pincompute.api.documents import read
from pincompute.api.names import HAND, WORKLOAD
from pincompute.api.service import PinterestService, ServiceSpec
from pincompute.api.summary import Summary
from pincompute.controller import resources
from pincompute.controller.resources import NEIGHBOURS, NOUNS, PLANNED
from pincompute.controller.workloads import Workloads
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.resource import DEPLOYMENTS, INGRESSES, SERVICES, Resource
from pincompute.kube.watch import Event
from pincompute.operator.loops import Loops
from pincompute.planning.snapshot import Cluster
from workloads import HELLO, cluster, new_project

CLUSTER = Cluster(name="test", domain="localhost", port=8080)
NATIVES = (SERVICES, DEPLOYMENTS, INGRESSES)
SEEN = (
    *(NOUNS[kind] for kind in PLANNED),
    *(each for kind, each in resources.NATIVES.items() if kind not in NEIGHBOURS),
)
"""What the operator sees, where a cluster has it in any case."""


class Counting(Client):
    """Counts what the operator writes by apply."""

    applies = 0

    async def apply(self, *arguments: Any, **words: Any) -> dict[str, Any]:
        self.applies += 1
        return await super().apply(*arguments, **words)


class World(NamedTuple):
    """A cluster with a running operator, and a project of this test's own."""

    client: Client
    operator: Counting
    workloads: Workloads
    loops: Loops
    project: str

    async def write(self, **spec: Any) -> Summary:
        workload = admit(read(HELLO)[0], self.project)
        spec = {**msgspec.to_builtins(workload.spec), **spec}
        changed = PinterestService(metadata=workload.metadata, spec=msgspec.convert(spec, ServiceSpec))
        return await self.workloads.write(changed, manager=HAND)

    async def natives(self) -> list[dict[str, Any]]:
        return [await self.client.get(each, "hello", self.project) for each in NATIVES]

    async def until(self, reason: str, revision: int) -> Summary:
        async with asyncio.timeout(60), aclosing(self.workloads.follow(self.project, "hello")) as summaries:
            async for summary in summaries:
                if summary.reason == reason and summary.revision >= revision and summary.message:
                    return summary
        raise AssertionError("the workload went away")

    def watch_service(self) -> AsyncGenerator[Event[Any]]:
        return self.client.watch(SERVICES, self.project, fields="metadata.name=hello")

    async def settled(self) -> None:
        """All that was written here was seen, and no pass is made any more."""
        before: object = None
        async with asyncio.timeout(60):
            while before != (now := (await self._written(), self.loops.planned.passes)) or self.loops.planned.waiting:
                before = now
                await asyncio.sleep(0.3)

    async def _written(self) -> dict[str, int]:
        """When each kind was written last; the operator has seen that by now, as far as it may look."""
        shown = [each for each in SEEN if each.kind not in self.loops.view.unseen]
        revisions = dict(zip((each.kind for each in shown), await asyncio.gather(*map(self._last, shown)), strict=True))
        while not all(self.loops.view.includes(kind, last) for kind, last in revisions.items()):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        return revisions

    async def _last(self, resource: Resource) -> int:
        ours = "" if resource.kind in PLANNED else WORKLOAD
        items = (await self.client.list(resource, self.project if resource.namespaced else "", labels=ours)).items
        return max((int(each["metadata"]["resourceVersion"]) for each in items), default=0)


@asynccontextmanager
async def world(plane: ControlPlane, access: Access | None = None) -> AsyncGenerator[World]:
    """`access` is the operator's, where it has other rights than all, or goes by another way."""
    async with cluster(plane) as client, Counting(access or plane.access(), agent="operator") as operator:
        await _forget(client)
        project = await new_project(client)
        loops = Loops(operator, CLUSTER)
        running = asyncio.create_task(loops.run())
        here = World(client, operator, Workloads(client), loops, project)
        try:
            yield here
        finally:
            await _forget(client)
            # A request that is cut off on its way would leave its connection to say goodbye after the loop has ended.
            await here.settled()
            running.cancel()
            await asyncio.wait({running})


async def _forget(client: Client) -> None:
    """The cluster is shared: the operator of one test has nothing to do with what another has left."""
    for kind in PLANNED:
        for each in (await client.list(NOUNS[kind])).items:
            metadata = each["metadata"]
            await client.delete(NOUNS[kind], metadata["name"], metadata.get("namespace", ""))

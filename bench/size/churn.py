"""Changes of services, each beside the same change of a bare Deployment: seconds until all pods run the new image."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import NamedTuple

from bench.size.fleet import PROBE_REPLICAS, PROBES, PROJECT
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError
from pincompute.kube.resource import DEPLOYMENTS, Resource
from pincompute.objects.content import Object

SERVICES = CUSTOM_RESOURCES["PinterestService"]
POD_CHANGES_PER_MINUTE = 1_000
"""At full size."""
USER = "bench"
_TIMEOUT_S = 300.0
_RETRY_S = 0.2


class Change(NamedTuple):
    ours: bool
    began: float
    """Seconds since the changes began."""
    seconds: float


class DeploymentWatch:
    """The Deployments of the project by a watch that survives a restart of the API server."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._changed = asyncio.Condition()
        self._deployments: dict[str, Object] = {}

    async def run(self) -> None:
        while True:
            try:
                async with aclosing(self._client.watch(DEPLOYMENTS, PROJECT)) as events:
                    async for event in events:
                        self._deployments[event.object["metadata"]["name"]] = event.object
                        async with self._changed:
                            self._changed.notify_all()
            except ApiError:
                await asyncio.sleep(_RETRY_S)

    def deployment(self, name: str) -> Object:
        return self._deployments[name]

    async def rolled_out(self, name: str, image: str) -> None:
        async with asyncio.timeout(_TIMEOUT_S), self._changed:
            await self._changed.wait_for(lambda: is_rolled_out(self._deployments.get(name), image))


def is_rolled_out(deployment: Object | None, image: str) -> bool:
    """Whether all replicas have the image and are ready, and no other pod is left."""
    if deployment is None or deployment["spec"]["template"]["spec"]["containers"][0]["image"] != image:
        return False
    status, replicas = deployment.get("status", {}), deployment["spec"]["replicas"]
    counts = (status.get(each, 0) for each in ("replicas", "updatedReplicas", "availableReplicas"))
    return status.get("observedGeneration") == deployment["metadata"]["generation"] and all(
        each == replicas for each in counts
    )


def pair_interval_s(fraction: float) -> float:
    """Seconds between two pairs of changes. Each pair changes the pods of a service and those of a Deployment."""
    return 2 * PROBE_REPLICAS * 60 / (POD_CHANGES_PER_MINUTE * fraction)


async def change_repeatedly(
    client: Client, watch: DeploymentWatch, interval_s: float, seconds: float, disturb: Sequence[Disturbance]
) -> list[Change]:
    """One pair after the other, ours first and last in turn, at a fixed rate however long each takes."""
    began = time.monotonic()
    changes: list[asyncio.Task[Change]] = []
    pending = sorted(disturb, key=lambda each: each.at_s)
    for number in range(int(seconds / interval_s)):
        await asyncio.sleep(max(began + number * interval_s - time.monotonic(), 0))
        while pending and time.monotonic() - began >= pending[0].at_s:
            await pending.pop(0).run()
        probe, image = number % PROBES, f"none:{number // PROBES + 2}"
        pair = ((SERVICES, f"probe-{probe}", True), (DEPLOYMENTS, f"bare-{probe}", False))
        for resource, name, ours in pair if number % 2 else reversed(pair):
            change = _change(client, watch, resource, name, image, began, ours=ours)
            changes.append(asyncio.create_task(change))
    return await asyncio.gather(*changes)


class Disturbance(NamedTuple):
    at_s: float
    name: str
    run: Callable[[], Awaitable[None]]


async def _change(  # noqa: PLR0917  (a row of the comparison)
    client: Client, watch: DeploymentWatch, resource: Resource, name: str, image: str, first: float, *, ours: bool
) -> Change:
    began = time.monotonic()
    spec: Object = (
        {"image": image}
        if ours
        else {"template": {"spec": {"containers": [{**_container(watch.deployment(name)), "image": image}]}}}
    )
    await _patch_until_accepted(client, resource, name, {"spec": spec})
    await watch.rolled_out(name, image)
    return Change(ours, began - first, time.monotonic() - began)


def _container(deployment: Object) -> Object:
    container: Object = deployment["spec"]["template"]["spec"]["containers"][0]
    return container


async def _patch_until_accepted(client: Client, resource: Resource, name: str, body: Object) -> None:
    """A restarted API server refuses connections for a while: the time counts for both sides."""
    async with asyncio.timeout(_TIMEOUT_S):
        while True:
            try:
                await client.patch(resource, name, PROJECT, body, style="merge", manager=USER)
            except ApiError:
                await asyncio.sleep(_RETRY_S)
            else:
                return

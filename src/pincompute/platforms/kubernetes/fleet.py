"""Reads every workload of a cluster with its runtimes, and changes and follows rolls. For the desk and for the CLI."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from pincompute.api.fleet import Fleet, FleetPod, RollStatus
from pincompute.api.names import DESK, WORKLOAD_LABEL
from pincompute.api.runtime import Runtime
from pincompute.api.status import READY, find_condition
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import DOCUMENT_INVALID, RUNTIME_UNKNOWN
from pincompute.controller.resources import CUSTOM_RESOURCES, PROJECT_KINDS, RUNTIME_KINDS, WORKLOADS
from pincompute.kube.client import Client
from pincompute.kube.errors import Invalid, NotFound
from pincompute.kube.resource import PODS
from pincompute.objects.content import Object
from pincompute.planning.observed_pods import Pod
from pincompute.platforms.kubernetes.cluster_reader import read_cluster_facts

_RUNTIMES = CUSTOM_RESOURCES[Runtime.__name__]
_KINDS = (*(each.__name__ for each in (*PROJECT_KINDS, *RUNTIME_KINDS)), *WORKLOADS)


class FleetClient:
    """Reads from the cluster on every call; nothing is cached."""

    def __init__(self, client: Client, manager: str = DESK) -> None:
        self._client = client
        self._manager = manager
        """Field manager of changed rolls."""

    async def fleet(self) -> Fleet:
        """All our resources and the cluster facts. Kinds are added, because items of a list response lack them."""
        facts = await read_cluster_facts(self._client)
        listings = await asyncio.gather(*(self._client.list(CUSTOM_RESOURCES[kind]) for kind in _KINDS))
        resources = [
            {**item, "kind": kind} for kind, listing in zip(_KINDS, listings, strict=True) for item in listing.items
        ]
        return Fleet(cluster_facts=facts, resources=resources)

    async def list_pods(self) -> list[FleetPod]:
        """Active pods of all workloads."""
        listing = await self._client.list(PODS, labels=WORKLOAD_LABEL, type=Pod)
        return [_fleet_pod(each) for each in listing.items if each.is_active]

    async def change_roll(self, number: int, change: Object) -> RollStatus:
        """Merges a change into the roll of a runtime; null removes a field. The operator carries it out."""
        body = {"spec": {"roll": change}}
        try:
            written = await self._client.patch(_RUNTIMES, str(number), "", body, style="merge", manager=self._manager)
        except NotFound as error:
            raise await self._unknown_runtime(number) from error
        except Invalid as error:
            # A validation rule that compares with the previous version; only the API server can evaluate it.
            raise Refused(error.problem()._replace(reason=DOCUMENT_INVALID)) from error
        return _roll_status(msgspec.convert(written, Runtime))

    async def follow_roll(self, number: int) -> AsyncGenerator[RollStatus]:
        """The present status of a roll, then each change."""
        try:
            last = _roll_status(msgspec.convert(await self._client.get(_RUNTIMES, str(number)), Runtime))
        except NotFound as error:
            raise await self._unknown_runtime(number) from error
        yield last
        async with aclosing(self._client.follow(_RUNTIMES, str(number), type=Runtime)) as states:
            async for runtime in states:
                now = _roll_status(runtime)
                if now != last:
                    last = now
                    yield now

    async def _unknown_runtime(self, number: int) -> Refused:
        listing = await self._client.list(_RUNTIMES)
        numbers = sorted(int(each["metadata"]["name"]) for each in listing.items)
        note = f"the runtimes are {', '.join(map(str, numbers))}" if numbers else "this cluster has no runtime"
        return Refused(Problem(RUNTIME_UNKNOWN, f"there is no runtime {number}", note=note))


def _fleet_pod(pod: Pod) -> FleetPod:
    status = pod.status
    containers = (*status.init_container_statuses, *status.container_statuses)
    return FleetPod(
        project=pod.metadata.namespace,
        workload=pod.workload,
        pod=pod.metadata.name,
        parts=list(pod.parts),
        images=[f"{each.image} {each.image_id}".rstrip() for each in containers],
    )


def _roll_status(runtime: Runtime) -> RollStatus:
    """The status as the CLI shows it. Text of an older generation is left out, as it would describe a former roll."""
    status = runtime.status
    ready = find_condition(status.conditions, READY)
    reported = ready is not None and status.observed_generation == runtime.metadata.generation
    return RollStatus(
        number=runtime.number,
        reason=ready.reason if ready and reported else "",
        message=ready.message if ready and reported else "",
        next=status.next if reported else "",
        wave=status.wave,
        is_current=bool(status.done) and reported,
        progress=msgspec.to_builtins(status.progress),
    )

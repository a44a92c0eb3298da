"""The fleet as a whole: what a desk, or a hand that has only a kubeconfig, can ask of runtimes and do with them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from pincompute.api.fleet import Copy, Fleet, Rolling
from pincompute.api.names import WORKLOAD
from pincompute.api.runtime import Runtime
from pincompute.api.status import READY, condition
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import DOCUMENT_INVALID, RUNTIME_UNKNOWN
from pincompute.controller.gather import facts
from pincompute.controller.resources import NOUNS, PROJECTS, RUNTIMES, WORKLOADS
from pincompute.kube.client import Client
from pincompute.kube.errors import Invalid, NotFound
from pincompute.kube.resource import PODS
from pincompute.objects.content import Object
from pincompute.planning.snapshot import Pod

_RUNTIMES = NOUNS[Runtime.__name__]
_KINDS = (*(each.__name__ for each in (*PROJECTS, *RUNTIMES)), *WORKLOADS)


class Fleets:
    """Everything it answers, it reads from the cluster."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def fleet(self) -> Fleet:
        """Kind by kind, side by side; items of a list do not say their kind."""
        told = await facts(self._client)
        listings = await asyncio.gather(*(self._client.list(NOUNS[kind]) for kind in _KINDS))
        nouns = [
            {**item, "kind": kind} for kind, listing in zip(_KINDS, listings, strict=True) for item in listing.items
        ]
        return Fleet(facts=told, nouns=nouns)

    async def copies(self) -> list[Copy]:
        """Of every workload."""
        listing = await self._client.list(PODS, labels=WORKLOAD, type=Pod)
        return [_copy(each) for each in listing.items if each.lives]

    async def roll(self, number: int, change: Object, *, manager: str) -> Rolling:
        """Change how a runtime is rolled; what is null goes. The operator does the rest."""
        body = {"spec": {"roll": change}}
        try:
            written = await self._client.patch(_RUNTIMES, str(number), "", body, style="merge", manager=manager)
        except NotFound as error:
            raise await self._no_runtime(number) from error
        except Invalid as error:
            # A rule that only the cluster knows: what was there before counts in it.
            raise Refused(error.problem()._replace(reason=DOCUMENT_INVALID)) from error
        return _rolling(msgspec.convert(written, Runtime))

    async def follow_roll(self, number: int) -> AsyncGenerator[Rolling]:
        """How it stands now, and then each change."""
        try:
            last = _rolling(msgspec.convert(await self._client.get(_RUNTIMES, str(number)), Runtime))
        except NotFound as error:
            raise await self._no_runtime(number) from error
        yield last
        async with aclosing(self._client.follow(_RUNTIMES, str(number), type=Runtime)) as states:
            async for runtime in states:
                now = _rolling(runtime)
                if now != last:
                    last = now
                    yield now

    async def _no_runtime(self, number: int) -> Refused:
        listing = await self._client.list(_RUNTIMES)
        there = sorted(int(each["metadata"]["name"]) for each in listing.items)
        note = f"the runtimes are {', '.join(map(str, there))}" if there else "there are none"
        return Refused(Problem(RUNTIME_UNKNOWN, f"there is no runtime {number}", note=note))


def _copy(pod: Pod) -> Copy:
    status = pod.status
    containers = (*status.init_container_statuses, *status.container_statuses)
    return Copy(
        project=pod.metadata.namespace,
        workload=pod.workload,
        pod=pod.metadata.name,
        parts=list(pod.parts),
        images=[f"{each.image} {each.image_id}".rstrip() for each in containers],
    )


def _rolling(runtime: Runtime) -> Rolling:
    status = runtime.status
    ready = condition(status.conditions, READY)
    told = ready is not None and status.observed_generation == runtime.metadata.generation
    return Rolling(
        number=runtime.number,
        reason=ready.reason if ready and told else "",
        message=ready.message if ready and told else "",
        next=status.next if told else "",
        wave=status.wave,
        current=bool(status.done) and told,
        progress=msgspec.to_builtins(status.progress),
    )

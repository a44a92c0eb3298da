"""How old the answers of insight may be: the age of its caches, and whether they have received given writes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from pincompute.api.insight import WriteMark
from pincompute.api.workload import Workload
from pincompute.base.clock import Clock
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError
from pincompute.kube.informer import Informer

WRITE_WAIT_S = 0.5
"""How long an answer waits for a write."""
PULSE_INTERVAL_S = 2.0
PULSE_TIMEOUT_S = 5.0
"""A busy API server answers later than an idle one; its watches are current nevertheless."""


class Freshness:
    """Watches say nothing while nothing changes, so that a pulse shows whether the API server responds."""

    def __init__(self, client: Client, clock: Clock, workloads: Mapping[str, Informer[Any]]) -> None:
        self.synced = asyncio.Event()
        """Set once every kind was listed."""
        self._client = client
        self._clock = clock
        self._workloads = workloads
        self._last_pulse = clock.monotonic()
        self._interrupted = False

    def age_s(self) -> float:
        """Seconds since the cluster was last heard; 0 while it responds."""
        if not self._interrupted and all(each.watching for each in self._workloads.values()):
            return 0.0
        return max(0.0, self._clock.monotonic() - self._last_pulse)

    async def run(self) -> None:
        """Asks the API server for a sign of life until cancelled."""
        while True:
            await self.pulse()
            await self._clock.sleep(PULSE_INTERVAL_S)

    async def pulse(self) -> None:
        try:
            async with asyncio.timeout(PULSE_TIMEOUT_S):
                await self._client.raw("GET", "/readyz")
        except (ApiError, TimeoutError):
            self._interrupted = True
            return
        self._interrupted = False
        if all(each.watching for each in self._workloads.values()):
            self._last_pulse = self._clock.monotonic()

    async def wait_for_writes(self, project: str, writes: Sequence[WriteMark]) -> bool:
        """Waits until the caches have received the writes; False if that takes too long."""
        try:
            async with asyncio.timeout(WRITE_WAIT_S):
                for mark in writes:
                    if informer := self._workloads.get(mark.kind):
                        await informer.wait_for(lambda _, i=informer, m=mark: _includes(i, project, m))
        except TimeoutError:
            return False
        return True


def _includes(informer: Informer[Any], project: str, mark: WriteMark) -> bool:
    if mark.revision and informer.resource_version < mark.revision:
        return False
    if not mark.deleted_uid:
        return True
    known: Workload | None = informer.items.get((project, mark.name))
    return known is None or known.metadata.uid != mark.deleted_uid or bool(known.metadata.deletion_timestamp)

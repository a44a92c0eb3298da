"""Every loop that exists, and who may run them: of several operators one acts, and the others see what it sees."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import structlog

from pincompute.base.memory import keep_all
from pincompute.controller.loop import Loop
from pincompute.controller.passes import Cause, Key
from pincompute.controller.reconcile import Reconciler
from pincompute.controller.view import View
from pincompute.kube.client import Client
from pincompute.kube.lease import Lease
from pincompute.planning.snapshot import Cluster

log = structlog.get_logger()


class Loops:
    """`view` follows the cluster; `planned` makes projects, runtimes, parts and workloads so."""

    def __init__(self, client: Client, cluster: Cluster, lease: Lease | None = None) -> None:
        self.client = client
        self.lease = lease
        """Nothing where nobody else could act."""
        self.view = View(client, self._touch, client.clock)
        self.planned = Loop(
            Reconciler(client, self.view, cluster), clock=client.clock, chance=client.chance, age=self.view.age
        )
        self._stop = asyncio.Event()

    @property
    def leads(self) -> bool:
        return self.lease is None or self.lease.held

    async def run(self) -> None:
        """Until it is told to stop."""
        await _first(self.view.run(), self._lead())

    def stop(self) -> None:
        """Finish what is under way, and let another lead."""
        self._stop.set()
        self.planned.finish()

    async def _lead(self) -> None:
        # A pass over half a view would make again what is only not yet seen.
        await self.view.synced()
        keep_all()
        log.info("the view is complete")
        while not self._stop.is_set():
            if self.lease is None:
                await self.planned.run()
                return
            await _first(self.lease.acquire(), self._stop.wait())
            if self.lease.held:
                log.info("this one leads", holder=self.lease.holder)
                # It is asked for every few seconds: after an outage nobody hears of the server sooner.
                self.view.hurry()
                await _first(self.lease.keep(), self.planned.run())
        if self.lease:
            await self.lease.release()

    def _touch(self, key: Key, cause: Cause) -> None:
        self.planned.touch(key, cause)


async def _first(*works: Coroutine[Any, Any, object]) -> None:
    """Return when one of them has ended; the others are cut off where they are."""
    tasks = [asyncio.create_task(each) for each in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()

"""Runs the cluster cache and the reconcile loop, the loop only while this process is leader.

Every operator of a cluster watches and keeps its cache warm; only the leader runs passes. After a failover the new
leader therefore starts from a complete cache. Its work queue already holds every key that changed while it stood by.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import structlog

from pincompute.base.gc_settings import freeze_gc
from pincompute.controller.cluster_cache import ClusterCache
from pincompute.controller.loop import ReconcileLoop
from pincompute.controller.passes import Key, Trigger
from pincompute.controller.reconcile import Reconciler
from pincompute.kube.client import Client
from pincompute.kube.lease import Lease
from pincompute.planning.snapshot import Cluster

log = structlog.get_logger()


class ControllerManager:
    """Owns the cache, which follows the cluster, and the loop, which reconciles every kind of ours."""

    def __init__(self, client: Client, cluster: Cluster, lease: Lease | None = None) -> None:
        self.client = client
        self.lease = lease
        """None means that no other operator exists, as in tests: this one is always leader."""
        self.cache = ClusterCache(client, self._enqueue, client.clock)
        self.loop = ReconcileLoop(
            Reconciler(client, self.cache, cluster),
            clock=client.clock,
            random=client.random,
            cache_age_s=self.cache.age_s,
        )
        self._stopping = asyncio.Event()

    @property
    def is_leader(self) -> bool:
        return self.lease is None or self.lease.held

    async def run(self) -> None:
        """Runs until `stop`. An exception of the cache or the loop ends it."""
        await _until_first_ends(self.cache.run(), self._run_as_leader())

    def stop(self) -> None:
        """Lets running passes end, then releases the lease."""
        self._stopping.set()
        self.loop.shut_down()

    async def _run_as_leader(self) -> None:
        # A pass over an incomplete cache would create again all objects that are not listed yet.
        await self.cache.wait_synced()
        freeze_gc()
        log.info("cache synced")
        while not self._stopping.is_set():
            if self.lease is None:
                await self.loop.run()
                return
            await _until_first_ends(self.lease.acquire(), self._stopping.wait())
            if self.lease.held:
                log.info("became leader", holder=self.lease.holder)
                # The lease is requested every few seconds. After an outage its response is the first sign that the API
                # server is back, so broken watches need not wait for the end of their backoff.
                self.cache.retry_watches_now()
                await _until_first_ends(self.lease.renew_until_lost(), self.loop.run())
        if self.lease:
            await self.lease.release()

    def _enqueue(self, key: Key, trigger: Trigger) -> None:
        self.loop.enqueue(key, trigger)


async def _until_first_ends(*coroutines: Coroutine[Any, Any, object]) -> None:
    """Runs coroutines until one ends, cancels the others and raises the exception of the one that ended."""
    tasks = [asyncio.create_task(each) for each in coroutines]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()

"""Process of the log store: watches pods, serves shippers and readers, and enforces retention."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from pincompute.agents.listeners import Listeners
from pincompute.agents.logs.namespaces import Namespace
from pincompute.agents.logs.server import build_app
from pincompute.agents.logs.store import LogStore
from pincompute.api.names import CLI_MANAGER, DESK, WORKLOAD_LABEL
from pincompute.base.clock import Clock, SystemClock
from pincompute.base.http_process import cancel_on_signal, serve_http
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.informer import Informer
from pincompute.kube.resource import NAMESPACES, PODS
from pincompute.kube.watch import DELETED, Event
from pincompute.planning.pods.container_runs import LoggedPod

READER_NAMES = frozenset({DESK, CLI_MANAGER})
RETENTION_INTERVAL_S = 60.0
POLL_INTERVAL_S = 1.0


async def run(access: Access, folder: Path, listeners: Listeners) -> None:
    """Runs until a signal."""
    with cancel_on_signal():
        async with Client(access, agent="log-store") as client:
            await _run_store(client, LogStore(folder), listeners)


async def _run_store(client: Client, store: LogStore, listeners: Listeners) -> None:
    clock = SystemClock()

    def on_pod_change(event: Event[LoggedPod]) -> None:
        if event.type == DELETED:
            store.mark_pod_deleted(event.object, clock.now())
        else:
            store.observe_pod(event.object)

    def on_namespace_change(event: Event[Namespace]) -> None:
        if event.type == DELETED:
            store.remove_namespace(event.object)
        else:
            store.observe_namespace(event.object)

    async with asyncio.TaskGroup() as group:
        namespaces = Informer(client, NAMESPACES, type=Namespace, on_change=on_namespace_change)
        group.create_task(namespaces.run())
        # The pods that follow are bound to these namespaces.
        await namespaces.synced.wait()
        pods = Informer(client, PODS, type=LoggedPod, labels=WORKLOAD_LABEL, on_change=on_pod_change)
        group.create_task(pods.run())
        # Writes are authorized by the pod's workload, which is known only after the first list.
        await pods.synced.wait()
        store.mark_missing_pods_deleted(clock.now())
        store.namespaces.watched = True
        store.remove_former_projects()
        async with AsyncExitStack() as stack:
            # The first run determines the free space.
            store.enforce_retention(clock.now())
            for listener in listeners:
                app = build_app(store, listener.authenticate, READER_NAMES)
                await stack.enter_async_context(serve_http(listener.listen, app, tls=listener.ssl_context(), grace=1.0))
            while True:
                await _wait_for_retention(store, clock)
                store.enforce_retention(clock.now())


async def _wait_for_retention(store: LogStore, clock: Clock) -> None:
    """Waits for the interval, or for less if the disk is full."""
    end = clock.monotonic() + RETENTION_INTERVAL_S
    await clock.sleep(POLL_INTERVAL_S)
    while clock.monotonic() < end and not store.disk_full:
        await clock.sleep(POLL_INTERVAL_S)

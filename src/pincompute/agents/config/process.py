"""Process of the config store: watches namespaces, serves the desk and pods, and removes contents of no bundle."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from pincompute.agents.config.server import build_app
from pincompute.agents.config.store import ConfigStore
from pincompute.agents.listeners import Listeners
from pincompute.agents.logs.namespaces import Namespace
from pincompute.base.clock import SystemClock
from pincompute.base.http_process import cancel_on_signal, serve_http
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.informer import Informer
from pincompute.kube.resource import NAMESPACES
from pincompute.kube.watch import DELETED, Event

COLLECT_INTERVAL_S = 3_600.0


async def run(access: Access, folder: Path, listeners: Listeners) -> None:
    """Runs until a signal."""
    with cancel_on_signal():
        async with Client(access, agent="config-store") as client:
            await _run_store(client, ConfigStore(folder), listeners)


async def _run_store(client: Client, store: ConfigStore, listeners: Listeners) -> None:
    def on_namespace_change(event: Event[Namespace]) -> None:
        metadata = event.object.metadata
        if event.type == DELETED:
            store.forget_namespace(metadata.name)
        else:
            store.observe_namespace(metadata.name, metadata.uid)

    async with asyncio.TaskGroup() as group:
        namespaces = Informer(client, NAMESPACES, type=Namespace, on_change=on_namespace_change)
        group.create_task(namespaces.run())
        # A bundle is bound to the namespace of its project, so none is served before all are known.
        await namespaces.synced.wait()
        store.remove_missing_projects()
        async with AsyncExitStack() as stack:
            for listener in listeners:
                app = build_app(store, listener.authenticate)
                await stack.enter_async_context(serve_http(listener.listen, app, tls=listener.ssl_context(), grace=1.0))
            while True:
                store.collect_unused()
                await SystemClock().sleep(COLLECT_INTERVAL_S)

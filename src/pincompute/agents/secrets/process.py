"""Process of the secret store: watches projects, and serves the desk and pods."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from pincompute.agents.listeners import Listeners
from pincompute.agents.secrets.key_provider import FileKeyProvider
from pincompute.agents.secrets.projects import Namespace
from pincompute.agents.secrets.server import Waiting, build_app
from pincompute.agents.secrets.store import SecretStore
from pincompute.base.clock import Clock
from pincompute.base.database import open_sql_database
from pincompute.base.http_process import cancel_on_signal, serve_http
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.informer import Informer
from pincompute.kube.resource import NAMESPACES
from pincompute.kube.watch import DELETED, Event

PRUNE_INTERVAL_S = 3600.0


async def run(access: Access, database: str, keys: Path, listeners: Listeners) -> None:
    """Runs until a signal. It serves with the projects that it knows while the cluster does not answer."""
    with cancel_on_signal():
        async with Client(access, agent="secret-store") as client, AsyncExitStack() as stack:
            opened = open_sql_database(database)
            stack.push_async_callback(opened.close)
            store = SecretStore(opened, FileKeyProvider(keys), client.clock)
            await store.open()
            waiting = Waiting()
            for listener in listeners:
                app = build_app(store, listener.authenticate, client.clock, waiting)
                await stack.enter_async_context(serve_http(listener.listen, app, tls=listener.ssl_context(), grace=1.0))
            async with asyncio.TaskGroup() as group:
                group.create_task(_follow_namespaces(client, store))
                group.create_task(_prune(store, client.clock))


async def _follow_namespaces(client: Client, store: SecretStore) -> None:
    changes: asyncio.Queue[Event[Namespace]] = asyncio.Queue()
    namespaces = Informer(client, NAMESPACES, type=Namespace, on_change=changes.put_nowait)
    async with asyncio.TaskGroup() as group:
        group.create_task(namespaces.run())
        while True:
            event = await changes.get()
            if event.type == DELETED:
                await store.remove_namespace(event.object)
            else:
                await store.observe_namespace(event.object)


async def _prune(store: SecretStore, clock: Clock) -> None:
    while True:
        await store.prune_audit_log()
        await clock.sleep(PRUNE_INTERVAL_S)

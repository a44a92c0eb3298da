"""Process of the log store: watches pods, serves shippers and readers, and enforces retention."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

from aiohttp import web

from pincompute.agents.identity.bundle import own_id, server_context
from pincompute.agents.logs.callers import LOOPBACK_CALLER, Caller, platform_caller, pod_caller
from pincompute.agents.logs.namespaces import Namespace
from pincompute.agents.logs.server import build_app
from pincompute.agents.logs.store import LogStore
from pincompute.agents.process import cancel_on_signal, client_certificate, serve_http
from pincompute.api.names import CLI_MANAGER, DESK, WORKLOAD_LABEL
from pincompute.base.clock import Clock, SystemClock
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.informer import Informer
from pincompute.kube.resource import NAMESPACES, PODS
from pincompute.kube.watch import DELETED, Event
from pincompute.planning.pods.container_runs import LoggedPod

READER_NAMES = frozenset({DESK, CLI_MANAGER})
RETENTION_INTERVAL_S = 60.0
POLL_INTERVAL_S = 1.0


class TlsListener(NamedTuple):
    """Listener for processes of the platform outside the cluster."""

    listen: str
    certificate: Path
    trust: Path

    def ssl_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(self.trust)
        context.load_cert_chain(self.certificate, self.certificate.with_suffix(".key"))
        return context

    def authenticate(self, request: web.Request) -> Caller:
        return platform_caller(client_certificate(request))


class PodListener(NamedTuple):
    """Listener for pods, whose certificates are from another authority, which is trusted only here."""

    listen: str
    identity: Path
    """Folder of the store's own identity."""

    def ssl_context(self) -> ssl.SSLContext:
        return server_context(self.identity)

    def authenticate(self, request: web.Request) -> Caller:
        return pod_caller(client_certificate(request), own_id(self.identity).trust_domain)


class LoopbackListener(NamedTuple):
    """Listener for users, whose connections the API server forwards to the loopback address of this pod."""

    listen: str

    def ssl_context(self) -> None:
        """None: the API server's connection to the pod is encrypted already."""

    def authenticate(self, _: web.Request) -> Caller:
        return LOOPBACK_CALLER


_Listeners = Sequence[TlsListener | PodListener | LoopbackListener]


async def run(access: Access, folder: Path, listeners: _Listeners) -> None:
    """Runs until a signal."""
    with cancel_on_signal():
        async with Client(access, agent="log-store") as client:
            await _run_store(client, LogStore(folder), listeners)


async def _run_store(client: Client, store: LogStore, listeners: _Listeners) -> None:
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

"""The store as a process: it sees the pods, takes what shippers bring, answers readers, and keeps its house."""

from __future__ import annotations

import asyncio
import signal
import ssl
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import NamedTuple

from aiohttp import web

from pincompute.agents.identity.bundle import own_id, server_context
from pincompute.agents.logs.callers import Caller, a_pod, one_of_ours
from pincompute.agents.logs.server import application
from pincompute.agents.logs.store import Store
from pincompute.api.names import DESK, WORKLOAD
from pincompute.base.clock import SystemClock
from pincompute.kube.client import Client
from pincompute.kube.informer import Informer
from pincompute.kube.kubeconfig import load
from pincompute.kube.resource import PODS
from pincompute.kube.watch import DELETED, Event
from pincompute.planning.lives import Pod

READERS = frozenset({DESK})
HOUSEKEEPING = 60.0


class Door(NamedTuple):
    """Where our own processes come."""

    listen: str
    certificate: Path
    trust: Path

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(self.trust)
        context.load_cert_chain(self.certificate, self.certificate.with_suffix(".key"))
        return context

    def who(self, request: web.Request) -> Caller:
        return one_of_ours(_shown(request))


class PodsDoor(NamedTuple):
    """Where pods come: another authority vouches for them, and is believed nowhere else."""

    listen: str
    identity: Path
    """The folder of the store's own identity."""

    def context(self) -> ssl.SSLContext:
        return server_context(self.identity)

    def who(self, request: web.Request) -> Caller:
        return a_pod(_shown(request), own_id(self.identity).trust_domain)


def _shown(request: web.Request) -> bytes:
    assert request.transport is not None
    shown: ssl.SSLObject = request.transport.get_extra_info("ssl_object")
    return shown.getpeercert(binary_form=True) or b""


async def run(kubeconfig: Path, folder: Path, doors: Sequence[Door | PodsDoor]) -> None:
    """Until told to end."""
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    with suppress(asyncio.CancelledError):
        async with Client(load(kubeconfig), agent="log-store") as client:
            await _run(client, Store(folder), doors)


async def _run(client: Client, store: Store, doors: Sequence[Door | PodsDoor]) -> None:
    clock = SystemClock()

    def changed(event: Event[Pod]) -> None:
        if event.type == DELETED:
            store.forget(event.object, clock.now())
        else:
            store.see(event.object)

    async with asyncio.TaskGroup() as group:
        pods = Informer(client, PODS, type=Pod, labels=WORKLOAD, on_change=changed)
        group.create_task(pods.run())
        # Who writes of what cannot be told before.
        await pods.synced.wait()
        store.catch_up(clock.now())
        async with AsyncExitStack() as stack:
            for door in doors:
                await _open(stack, store, door)
            while True:
                store.keep_house(clock.now())
                await clock.sleep(HOUSEKEEPING)


async def _open(stack: AsyncExitStack, store: Store, door: Door | PodsDoor) -> None:
    runner = web.AppRunner(application(store, door.who, READERS), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    host, _, port = door.listen.rpartition(":")
    await web.TCPSite(runner, host, int(port), ssl_context=door.context()).start()

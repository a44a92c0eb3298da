"""The store as a process: it sees the pods, takes what shippers bring, answers readers, and keeps its house."""

from __future__ import annotations

import asyncio
import signal
import ssl
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from aiohttp import web

from pincompute.agents.logs.callers import Caller, caller
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
    """Where it listens, who it is, and whom it trusts."""

    listen: str
    certificate: Path
    key: Path
    trust: tuple[Path, ...]
    """Of ours, and of the workloads' pods."""
    trust_domain: str

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        for each in self.trust:
            context.load_verify_locations(each)
        context.load_cert_chain(self.certificate, self.key)
        return context

    def who(self, request: web.Request) -> Caller:
        assert request.transport is not None
        shown: ssl.SSLObject = request.transport.get_extra_info("ssl_object")
        return caller(shown.getpeercert(binary_form=True) or b"", self.trust_domain)


async def run(kubeconfig: Path, folder: Path, door: Door) -> None:
    """Until told to end."""
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    with suppress(asyncio.CancelledError):
        async with Client(load(kubeconfig), agent="log-store") as client:
            await _run(client, Store(folder), door)


async def _run(client: Client, store: Store, door: Door) -> None:
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
        runner = web.AppRunner(application(store, door.who, READERS), access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        host, _, port = door.listen.rpartition(":")
        await web.TCPSite(runner, host, int(port), ssl_context=door.context()).start()
        try:
            while True:
                store.keep_house(clock.now())
                await clock.sleep(HOUSEKEEPING)
        finally:
            await runner.cleanup()

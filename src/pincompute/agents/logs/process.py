"""The store as a process: it sees the pods, takes what shippers bring, answers readers, and keeps its house."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

from aiohttp import web

from pincompute.agents.identity.bundle import own_id, server_context
from pincompute.agents.logs.callers import WHOEVER_MAY, Caller, a_pod, one_of_ours
from pincompute.agents.logs.server import application
from pincompute.agents.logs.store import Store
from pincompute.agents.process import answering, until_told
from pincompute.api.names import DESK, HAND, WORKLOAD
from pincompute.base.clock import Clock, SystemClock
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.informer import Informer
from pincompute.kube.resource import PODS
from pincompute.kube.watch import DELETED, Event
from pincompute.planning.pods.lives import Pod

READERS = frozenset({DESK, HAND})
HOUSEKEEPING = 60.0
PAUSE = 1.0


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


class OwnDoor(NamedTuple):
    """Where people come by way of the API server, which forwards them to the loopback address of this pod."""

    listen: str

    def context(self) -> None:
        """What comes here comes by the API server's own connection."""

    def who(self, _: web.Request) -> Caller:
        return WHOEVER_MAY


_Doors = Sequence[Door | PodsDoor | OwnDoor]


def _shown(request: web.Request) -> bytes:
    assert request.transport is not None
    shown: ssl.SSLObject = request.transport.get_extra_info("ssl_object")
    return shown.getpeercert(binary_form=True) or b""


async def run(access: Access, folder: Path, doors: _Doors) -> None:
    """Until told to end."""
    with until_told():
        async with Client(access, agent="log-store") as client:
            await _run(client, Store(folder), doors)


async def _run(client: Client, store: Store, doors: _Doors) -> None:
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
            # Before it, nobody knows how much room there is.
            store.keep_house(clock.now())
            for door in doors:
                page = application(store, door.who, READERS)
                await stack.enter_async_context(answering(door.listen, page, tls=door.context(), grace=1.0))
            while True:
                await _until_due(store, clock)
                store.keep_house(clock.now())


async def _until_due(store: Store, clock: Clock) -> None:
    """A minute, or a moment where the store is crowded."""
    end = clock.monotonic() + HOUSEKEEPING
    await clock.sleep(PAUSE)
    while clock.monotonic() < end and not store.crowded:
        await clock.sleep(PAUSE)

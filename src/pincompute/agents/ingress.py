"""Keeps nginx at what the Ingresses of a cluster say."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

import structlog

from pincompute.agents.nginx import Nginx, worker_user
from pincompute.agents.nginx_config import nginx_config
from pincompute.agents.process import until_told
from pincompute.agents.routes import NOBODY, EndpointSlice, Found, Ingress, Lost, Service, copies, table, wanting
from pincompute.base.pause import backoff
from pincompute.base.successor import VARIABLE, become
from pincompute.kube.client import Client
from pincompute.kube.informer import Informer
from pincompute.kube.kubeconfig import load
from pincompute.kube.resource import ENDPOINT_SLICES, INGRESSES, SERVICES
from pincompute.kube.watch import Event

PAUSE = 0.1
"""Seconds between two reloads, so that many changes at once become one."""
LATER = 2.0
"""Seconds after which it tells of copies that came and went: while it knows of enough, they do not matter."""
ROUND = 60.0
"""Seconds after which it looks around though nothing changed."""

log = structlog.get_logger()


async def run(kubeconfig: Path, listen: str, folder: Path, program: Path, *, by_copies: bool) -> None:
    """Until told to end."""
    with until_told():
        async with Client(load(kubeconfig), agent="ingress") as client:
            agent = Agent(client, listen, folder, program, by_copies=by_copies)
            agent.heed()
            await agent.run()


class Agent:
    def __init__(self, client: Client, listen: str, folder: Path, program: Path, *, by_copies: bool) -> None:
        self._changed = asyncio.Event()
        self._ingresses = Informer(client, INGRESSES, type=Ingress, on_change=lambda _: self._changed.set())
        self._services = Informer(client, SERVICES, type=Service, on_change=lambda _: self._changed.set())
        self._slices = Informer(client, ENDPOINT_SLICES, type=EndpointSlice, on_change=self._copies_changed)
        self._nginx = Nginx(program, folder, on_end=self._changed.set)
        self._by_copies = by_copies
        self._listen = listen
        self._folder = folder
        self._config = ""
        self._told: Found = NOBODY
        self._lost: tuple[Lost, ...] = ()
        self._failures = 0
        self._timer: asyncio.TimerHandle | None = None
        self._successor: Path | None = None

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._ingresses.run())
            group.create_task(self._services.run())
            if self._by_copies:
                group.create_task(self._slices.run())
            self._config = await self._nginx.adopt()
            # Half a picture would take away what was served before.
            await self._ingresses.synced.wait()
            await self._services.synced.wait()
            await self._follow()

    async def _follow(self) -> None:
        """Every change of the cluster, and every end of nginx, is mended here."""
        try:
            while True:
                self._changed.clear()
                if self._successor:
                    # Here nginx is neither being started nor ended, and goes on as our child.
                    log.info("becoming the next version")
                    become(self._successor)
                await self._tell()
                await self._keep_running()
                await asyncio.sleep(max(PAUSE, backoff(self._failures, 1) if self._failures else 0))
                with suppress(TimeoutError):
                    async with asyncio.timeout(0 if self._failures else ROUND):
                        await self._changed.wait()
        finally:
            await self._nginx.stop()

    def heed(self) -> None:
        """Who started us may tell us to become the next version."""
        if file := os.environ.get(VARIABLE):
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._succeed, Path(file))

    def _succeed(self, file: Path) -> None:
        self._successor = file
        self._changed.set()

    def _copies_changed(self, event: Event[EndpointSlice]) -> None:
        if wanting(copies([event.object]), self._told):
            self._changed.set()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LATER, self._changed.set)

    async def _tell(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        found = copies(self._slices.items.values())
        self._told = found
        routes, lost = table(self._ingresses.items.values(), self._services.items, found)
        for each in set(lost) - set(self._lost):
            log.warning("route taken already", **each._asdict())
        self._lost = lost
        config = nginx_config(routes, self._listen, self._folder, worker_user())
        if config == self._config:
            return
        self._config = config
        if complaint := await self._nginx.take(config):
            log.error("nginx refuses its configuration and keeps to the one before", why=complaint)
        else:
            log.info("routes told", routes=len(routes), faults=sum(bool(route.fault) for route in routes))

    async def _keep_running(self) -> None:
        if self._nginx.running:
            self._nginx.shorten_logs()
        elif why := await self._nginx.start():
            self._failures += 1
            log.error("nginx does not start", why=why, failures=self._failures)
        else:
            self._failures = 0
            log.info("nginx serves", listen=self._listen)

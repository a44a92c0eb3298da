"""The operator: the process that runs every loop, and says whether they move."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import click
import structlog
from aiohttp import web

from pincompute.api.names import CLUSTER_FACTS, SYSTEM
from pincompute.base import log as logs
from pincompute.controller.loop import Key, Loop
from pincompute.controller.reconcile import Reconciler
from pincompute.controller.view import View
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError
from pincompute.kube.kubeconfig import load
from pincompute.kube.resource import CONFIG_MAPS
from pincompute.planning.snapshot import Cluster

STALE = 300.0
"""Seconds without a word from the API server, bookmarks included, after which the view is not to be trusted."""

log = structlog.get_logger()


@click.command()
@click.option("--kubeconfig", type=click.Path(path_type=Path), required=True, help="Whose rights to act with.")
@click.option("--listen", default="127.0.0.1:0", help="Where health is told.", show_default=True)
def operator(kubeconfig: Path, listen: str) -> None:
    """Run every loop until told to stop."""
    logs.configure(process="operator")
    asyncio.run(_run(kubeconfig, listen))


async def _run(kubeconfig: Path, listen: str) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with Client(load(kubeconfig), agent="operator") as client:
        cluster = await cluster_facts(client)
        loops = Loops(client, cluster)
        site = await _serve(listen, loops)
        running = asyncio.create_task(loops.run())
        ended = asyncio.create_task(stop.wait())
        await asyncio.wait({running, ended}, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        await site.cleanup()
        if running.done():
            # A loop that ended by itself is a fault: whoever started this process will see it end, and why.
            running.result()
        running.cancel()
        await asyncio.wait({running})


class Loops:
    """Every loop that exists."""

    def __init__(self, client: Client, cluster: Cluster) -> None:
        self.view = View(client, self._touch, client.clock)
        self.planned = Loop(Reconciler(client, self.view, cluster))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.view.run())
            # A pass over half a view would make again what is only not yet seen.
            await self.view.synced()
            log.info("the view is complete")
            group.create_task(self.planned.run())

    def _touch(self, key: Key) -> None:
        self.planned.touch(key)


async def cluster_facts(client: Client) -> Cluster:
    """What this cluster says of itself; asked until it answers, as the two may start together."""
    while True:
        try:
            facts = await client.get(CONFIG_MAPS, CLUSTER_FACTS, SYSTEM)
        except ApiError as error:
            log.warning("waiting for the cluster's facts", why=error.message)
            await asyncio.sleep(0.5)
        else:
            return Cluster.of(facts["data"])


async def _serve(listen: str, loops: Loops) -> web.AppRunner:
    async def healthz(_: web.Request) -> web.Response:
        age = loops.view.age()
        text = f"view {age:.0f} s old, {loops.planned.passes} passes\n"
        return web.Response(text=text, status=200 if age < STALE else 503)

    application = web.Application()
    application.router.add_get("/healthz", healthz)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    host, _, port = listen.rpartition(":")
    await web.TCPSite(runner, host, int(port)).start()
    return runner

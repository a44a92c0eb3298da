"""The operator: the process that runs every loop, and says whether they move."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click
import structlog

from pincompute.api.names import CLUSTER_FACTS, OPERATOR, SYSTEM
from pincompute.base import log as logs
from pincompute.base.memory import keep_much
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError
from pincompute.kube.in_cluster import load_or_in_cluster
from pincompute.kube.lease import Lease, Terms
from pincompute.kube.resource import CONFIG_MAPS
from pincompute.kube.transport import USUAL, Transport
from pincompute.operator.door import Door
from pincompute.operator.fence import Fenced
from pincompute.operator.loops import Loops
from pincompute.planning.snapshot import Cluster

GRACE = 3.0
"""Seconds that passes under way get to end in, once this process was told to."""

log = structlog.get_logger()


@click.command()
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="Whose rights to act with; in a pod its own.")
@click.option("--listen", default="127.0.0.1:0", help="Where health, metrics and stories are told.", show_default=True)
def operator(kubeconfig: Path | None, listen: str) -> None:
    """Run every loop until told to stop."""
    logs.configure(process="operator")
    keep_much()
    asyncio.run(_run(load_or_in_cluster(kubeconfig), listen))


async def _run(access: Access, listen: str) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    door = Door()
    port = await door.open(listen)
    try:
        # Nobody else has this port of this machine: who held the lease by this name before has ended.
        await operate(access, f"{socket.gethostname()}:{port}", stop, door)
    finally:
        await door.close()


async def operate(
    access: Access, holder: str, stop: asyncio.Event, door: Door | None = None, terms: Terms | None = None
) -> None:
    """Stand by, lead when it is our turn, and end in peace when told to stop."""
    # The lease goes by a connection of its own: no backlog of ours may cost us it.
    async with Client(access, agent="operator lease") as alone:
        lease = Lease(alone, SYSTEM, OPERATOR, holder, terms or Terms())
        fenced = Fenced(Transport(access, "operator", USUAL), lambda: lease.held)
        async with Client(access, agent="operator", transport=fenced) as client, _told(stop) as told:
            facts = asyncio.create_task(cluster_facts(client))
            if not await _before(facts, told):
                return
            loops = Loops(client, facts.result(), lease)
            if door:
                door.loops = loops
            running = asyncio.create_task(loops.run())
            if await _before(running, told, loops.stop):
                # A loop that ended by itself is a fault: whoever started this process will see it end, and why.
                running.result()
            await lease.release()


@asynccontextmanager
async def _told(stop: asyncio.Event) -> AsyncGenerator[asyncio.Task[object]]:
    waiting: asyncio.Task[object] = asyncio.create_task(stop.wait())
    try:
        yield waiting
    finally:
        waiting.cancel()


async def _before(
    work: asyncio.Task[Any], told: asyncio.Task[object], finish: Callable[[], None] | None = None
) -> bool:
    """Whether the work came to its own end; told to stop, it has a while to finish where it knows how."""
    try:
        await asyncio.wait({work, told}, return_when=asyncio.FIRST_COMPLETED)
        if finish:
            finish()
            await asyncio.wait({work}, timeout=GRACE)
        return work.done()
    finally:
        if not work.done():
            work.cancel()
            await asyncio.wait({work})


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

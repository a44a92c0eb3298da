"""The desk as a process."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import click
from aiohttp import web

from pincompute.base import log as logs
from pincompute.base.ids import Ids, RandomIds
from pincompute.controller.fleet import Fleets
from pincompute.controller.log_store import LogStore, log_store
from pincompute.controller.workloads import Workloads
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load
from pincompute.submission.bookkeeper import Bookkeeper
from pincompute.submission.carrier import Carrier
from pincompute.submission.database import Database, open_database
from pincompute.submission.desk import Desk
from pincompute.submission.kubernetes import Kubernetes
from pincompute.submission.server import application, runner
from pincompute.submission.shift import serve


@click.command()
@click.option("--kubeconfig", type=click.Path(path_type=Path), required=True, help="Whose rights to act with.")
@click.option("--listen", default="127.0.0.1:0", help="Address and port.", show_default=True)
@click.option("--token-file", type=click.Path(path_type=Path), required=True, help="What clients must show.")
@click.option("--log-store", default="", help="Where lines are kept; nowhere by default.")
@click.option("--database", required=True, help="Where the record is kept: a file, or postgresql://…")
def desk(kubeconfig: Path, listen: str, token_file: Path, log_store: str, database: str) -> None:
    """Run the submission service."""
    logs.configure(process="desk")
    asyncio.run(_run(kubeconfig, listen, token_file.read_text().strip(), log_store, database))


async def _run(kubeconfig: Path, listen: str, token: str, logs_at: str, database: str) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    access = load(kubeconfig)
    database_ = await open_database(database)
    async with Client(access, agent="desk") as client, AsyncExitStack() as stack:
        # By the same certificate that it has for the cluster.
        store = await stack.enter_async_context(log_store(logs_at, access.tls())) if logs_at else None
        desk = await stack.enter_async_context(at_work(database_, client, store))
        running = runner(application(desk, Fleets(client), token))
        await running.setup()
        host, _, port = listen.rpartition(":")
        await web.TCPSite(running, host, int(port)).start()
        await stop.wait()
        await running.cleanup()
    await database_.close()


@asynccontextmanager
async def at_work(
    database: Database, client: Client, store: LogStore | None = None, ids: Ids | None = None
) -> AsyncGenerator[Desk]:
    """A desk with all that works for it: who watches its platform, who keeps the ledger, and who carries."""
    clock = client.clock
    platform = Kubernetes(client)
    books = Bookkeeper(database, platform, clock)
    carrier = Carrier(database, platform, books, clock, client.chance)
    watching = asyncio.create_task(platform.run())
    working = asyncio.create_task(serve(partial(database.shift, platform.name), (carrier.run, books.run)))
    try:
        if not database.shared:
            # Before a file there is one desk: what it accepts is carried by nobody else.
            await carrier.begun.wait()
        yield Desk(database, carrier, Workloads(client, store), clock, ids or RandomIds())
    finally:
        for each in (working, watching):
            each.cancel()
        await asyncio.gather(working, watching, return_exceptions=True)

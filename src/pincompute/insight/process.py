"""`pin insight`: insight as a process."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import click
from aiohttp import web

from pincompute.api.names import DESK
from pincompute.base import logging as logs
from pincompute.base.gc_settings import relax_gc
from pincompute.base.http_process import (
    cancel_on_signal,
    client_certificate,
    common_name,
    mutual_tls_context,
    serve_http,
)
from pincompute.insight.change_stream import ChangeStream
from pincompute.insight.fleet import Fleet
from pincompute.insight.freshness import Freshness
from pincompute.insight.history import History
from pincompute.insight.history_store import open_history_store
from pincompute.insight.server import build_app
from pincompute.insight.watches import FleetWatches
from pincompute.kube.client import Client
from pincompute.kube.in_cluster import load_or_in_cluster

_FILE = click.Path(path_type=Path)


class InsightOptions(NamedTuple):
    """The options of the command, named as on the command line."""

    kubeconfig: Path | None
    listen: str
    cluster: str
    database: str
    certificate: Path
    trust: Path


@click.command()
@click.option("--kubeconfig", type=_FILE, help="Access to the cluster. Default: the pod's service account.")
@click.option("--listen", default="127.0.0.1:0", help="Address and port.", show_default=True)
@click.option("--cluster", default="main", help="Name of the cluster in lists.", show_default=True)
@click.option(
    "--database",
    required=True,
    envvar="PIN_INSIGHT_DATABASE",
    help="File, or postgresql://…, for the history. Use PIN_INSIGHT_DATABASE if the URL holds a password.",
)
@click.option("--certificate", type=_FILE, required=True, help="Certificate of insight; its key lies beside it.")
@click.option("--trust", type=_FILE, required=True, help="Authority of the desk's client certificate.")
def insight(**options: Any) -> None:
    """Run insight: lists, a stream of changes, and the history of workloads, for the desk."""
    logs.configure(process="insight")
    relax_gc()
    asyncio.run(_run(InsightOptions(**options)))


async def _run(options: InsightOptions) -> None:
    with cancel_on_signal():
        async with Client(load_or_in_cluster(options.kubeconfig), agent="insight") as client:
            store = await open_history_store(options.database)
            try:
                await run_insight(client, History(store, client.clock), options)
            finally:
                await store.close()


async def run_insight(client: Client, history: History, options: InsightOptions) -> None:
    """Watches and serves until cancelled. Requests are answered as soon as the caches are filled."""
    fleet = Fleet(options.cluster, ChangeStream(secrets.token_hex(4)), history, client.clock)
    watches = FleetWatches(client, fleet)
    freshness = Freshness(client, client.clock, watches.workloads)
    await history.load()
    tls = mutual_tls_context(options.certificate, options.trust)
    app = build_app(fleet, freshness, is_desk)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(serve_http(options.listen, app, tls=tls, grace=1.0, cancel_disconnected=True))
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(watches.run(freshness))
                group.create_task(freshness.run())
                group.create_task(history.run())
        finally:
            await history.flush()


def is_desk(request: web.Request) -> bool:
    """Whether the caller has the certificate of the desk, from the authority that the listener trusts."""
    return common_name(client_certificate(request)) == DESK

"""The command `operator`: starts the manager under leader election and stops it on SIGTERM."""

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

from pincompute.api.names import CLUSTER_FACTS_CONFIGMAP, OPERATOR, SYSTEM_NAMESPACE
from pincompute.base import logging as logs
from pincompute.base.gc_settings import relax_gc
from pincompute.controller.certificate_probe import CertificateProbe
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError
from pincompute.kube.in_cluster import load_or_in_cluster
from pincompute.kube.lease import Lease, LeaseTimings
from pincompute.kube.resource import CONFIG_MAPS
from pincompute.kube.transport import DEFAULT_LIMITS, HttpTransport
from pincompute.operator.http_server import HttpServer
from pincompute.operator.lease_guard import LeaseGuard
from pincompute.operator.manager import ControllerManager
from pincompute.planning.snapshot import Cluster

SHUTDOWN_GRACE_S = 3.0
"""Time that running passes get to end after SIGTERM."""
FACTS_RETRY_S = 0.5

log = structlog.get_logger()


@click.command()
@click.option(
    "--kubeconfig", type=click.Path(path_type=Path), help="Credentials. Default in a pod: its service account."
)
@click.option(
    "--listen", default="127.0.0.1:0", help="Address for health, metrics and pass history.", show_default=True
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="File with the bearer token of metrics and pass history. Default: none, they are open.",
)
def operator(kubeconfig: Path | None, listen: str, token_file: Path | None) -> None:
    """Run the reconcile loop until SIGTERM."""
    logs.configure(process="operator")
    relax_gc()
    asyncio.run(_run(load_or_in_cluster(kubeconfig), listen, token_file))


async def _run(access: Access, listen: str, token_file: Path | None) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    server = HttpServer(token_file)
    port = await server.open(listen)
    try:
        # The port makes the holder's name unique on this machine. A former process of the same name must have ended, so
        # its lease may be taken over without waiting for it to expire.
        await run_operator(access, f"{socket.gethostname()}:{port}", stop, server)
    finally:
        await server.close()


async def run_operator(
    access: Access,
    holder: str,
    stop: asyncio.Event,
    server: HttpServer | None = None,
    timings: LeaseTimings | None = None,
) -> None:
    """Stands by, leads while it holds the lease, and releases the lease when `stop` is set."""
    # The lease has a connection of its own: renewals must not queue behind the requests of passes.
    async with Client(access, agent="operator lease") as lease_client:
        lease = Lease(lease_client, SYSTEM_NAMESPACE, OPERATOR, holder, timings or LeaseTimings())
        guarded = LeaseGuard(HttpTransport(access, "operator", DEFAULT_LIMITS), lambda: lease.held)
        async with Client(access, agent="operator", transport=guarded) as client, _task_of(stop) as stopped:
            facts = asyncio.create_task(wait_for_cluster_facts(client))
            if not await _run_until_stopped(facts, stopped):
                return
            manager = ControllerManager(client, facts.result(), lease)
            if server:
                server.manager = manager
            running = asyncio.create_task(manager.run())
            probe = CertificateProbe(manager.cache, facts.result(), client.clock, lambda: manager.is_leader)
            probing = asyncio.create_task(probe.run())
            try:
                if await _run_until_stopped(running, stopped, manager.stop):
                    # The manager never ends by itself, so this raises its exception: the process exits with the cause.
                    running.result()
            finally:
                probing.cancel()
            await lease.release()


@asynccontextmanager
async def _task_of(stop: asyncio.Event) -> AsyncGenerator[asyncio.Task[object]]:
    waiting: asyncio.Task[object] = asyncio.create_task(stop.wait())
    try:
        yield waiting
    finally:
        waiting.cancel()


async def _run_until_stopped(
    work: asyncio.Task[Any], stopped: asyncio.Task[object], shut_down: Callable[[], None] | None = None
) -> bool:
    """Whether the work has ended, rather than being cancelled. With `shut_down` it gets a grace period to end in."""
    try:
        await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if shut_down:
            shut_down()
            await asyncio.wait({work}, timeout=SHUTDOWN_GRACE_S)
        return work.done()
    finally:
        if not work.done():
            work.cancel()
            await asyncio.wait({work})


async def wait_for_cluster_facts(client: Client) -> Cluster:
    """Reads the ConfigMap with the cluster's facts, retrying until the API server answers: both may start together."""
    while True:
        try:
            facts = await client.get(CONFIG_MAPS, CLUSTER_FACTS_CONFIGMAP, SYSTEM_NAMESPACE)
        except ApiError as error:
            log.warning("waiting for cluster facts", why=error.message)
            await asyncio.sleep(FACTS_RETRY_S)
        else:
            return Cluster.from_facts(facts["data"])

"""Process of the signer, with its health page and metrics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from aiohttp import web
from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from pincompute.agents.identity.issuer import Issuer
from pincompute.agents.identity.root_ca import RootAuthority
from pincompute.agents.identity.signer import Signer
from pincompute.api.names import LOG_SHIPPER, LOG_STORE, NODES_NAMESPACE, SYSTEM_NAMESPACE
from pincompute.base.http_process import cancel_on_signal, serve_http
from pincompute.base.metrics_page import add_metrics_page
from pincompute.base.page_token import token_middlewares
from pincompute.kube.access import Access
from pincompute.kube.client import Client

STALE_AFTER_S = 600.0
"""A signer that heard nothing from the API server for this long is unhealthy.

Longer than a watch lasts, because a watch without requests may have no events.
"""

PLATFORM_ACCOUNTS = frozenset({(SYSTEM_NAMESPACE, LOG_STORE), (NODES_NAMESPACE, LOG_SHIPPER)})
"""Service accounts of the platform's own parts that run in the cluster and connect to pods."""


async def run(access: Access, listen: str, certificate: Path, key: Path, token_file: Path | None = None) -> None:
    """Runs until a signal, with a signing certificate that another process renews."""
    with cancel_on_signal():
        async with Client(access, agent="signer") as client:
            signer = Signer(client, Issuer(certificate, key))
            async with serve_status(listen, signer, token_file):
                await signer.run()


async def run_in_cluster(access: Access, listen: str, folder: Path, token_file: Path | None = None) -> None:
    """Runs until a signal, with the cluster's signing certificate, which it renews and writes to the folder."""
    with cancel_on_signal():
        async with Client(access, agent="signer") as client:
            root = RootAuthority(client, folder)
            await root.establish()
            signer = Signer(client, Issuer(root.certificate, root.key), PLATFORM_ACCOUNTS)
            async with serve_status(listen, signer, token_file), asyncio.TaskGroup() as group:
                group.create_task(root.renew_forever())
                await signer.run()


@asynccontextmanager
async def serve_status(listen: str, signer: Signer, token_file: Path | None = None) -> AsyncGenerator[None]:
    """Serves health and metrics while the block runs. With a token file, the metrics require its token."""

    async def healthz(_: web.Request) -> web.Response:
        text = f"last message of the API server {signer.staleness_s:.0f} s ago, {signer.queue_length} requests queued\n"
        return web.Response(text=text, status=200 if signer.staleness_s < STALE_AFTER_S else 503)

    application = web.Application(middlewares=token_middlewares(token_file))
    application.router.add_get("/healthz", healthz)
    add_metrics_page(application, partial(_signer_metrics, signer))
    async with serve_http(listen, application):
        yield


def _signer_metrics(signer: Signer) -> Iterator[Metric]:
    results = CounterMetricFamily("pincompute_signer_results", "Certificate requests by result.", labels=["result"])
    for result in ("Issued", "Denied", "Failed", "Deleted", "Retried"):
        results.add_metric([result.lower()], signer.result_counts[result])
    yield results
    yield GaugeMetricFamily("pincompute_signer_queue_length", "Queued certificate requests.", signer.queue_length)
    yield GaugeMetricFamily(
        "pincompute_signer_certificate_expiry_timestamp_seconds",
        "Expiry of the signer's own certificate.",
        signer.issuer.expires_at,
    )

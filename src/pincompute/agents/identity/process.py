"""The signer's process: it answers until told to end, and says how it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from pincompute.agents.identity.issuing import Issuer
from pincompute.agents.identity.root import Root
from pincompute.agents.identity.signer import Signer
from pincompute.agents.process import answering, until_told
from pincompute.api.names import LOG_SHIPPER, LOG_STORE, NODES, SYSTEM
from pincompute.kube.access import Access
from pincompute.kube.client import Client

STALE = 600.0
"""Seconds without a word from the API server; of a quiet kind it may say nothing until the watch is renewed."""


PARTS = frozenset({(SYSTEM, LOG_STORE), (NODES, LOG_SHIPPER)})
"""The platform's own parts that run in the cluster, where the signer does, and speak to pods."""


async def run(access: Access, listen: str, certificate: Path, key: Path) -> None:
    """Until told to end; its files are for others to renew."""
    with until_told():
        async with Client(access, agent="signer") as client:
            signer = Signer(client, Issuer(certificate, key))
            async with _page(listen, signer):
                await signer.run()


async def run_in_cluster(access: Access, listen: str, folder: Path) -> None:
    """Until told to end; what it signs with is the cluster's, and laid into the folder."""
    with until_told():
        async with Client(access, agent="signer") as client:
            root = Root(client, folder)
            await root.establish()
            signer = Signer(client, Issuer(root.certificate, root.key), PARTS)
            async with _page(listen, signer), asyncio.TaskGroup() as group:
                group.create_task(root.renew())
                await signer.run()


@asynccontextmanager
async def _page(listen: str, signer: Signer) -> AsyncGenerator[None]:
    async def healthz(_: web.Request) -> web.Response:
        text = f"heard the API server {signer.age:.0f} s ago, {signer.waiting} requests wait\n"
        return web.Response(text=text, status=200 if signer.age < STALE else 503)

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Figures(signer))
    application = web.Application()
    application.router.add_get("/healthz", healthz)
    application.router.add_get("/metrics", metrics)
    async with answering(listen, application):
        yield


class _Figures(Collector):
    """As Prometheus reads them: taken from plain counters when somebody asks."""

    def __init__(self, signer: Signer) -> None:
        self._signer = signer

    def collect(self) -> Iterator[Metric]:
        signer = self._signer
        answers = CounterMetricFamily("pincompute_signer_answers", "Answers, and tries that failed.", labels=["answer"])
        for answer in ("Issued", "Denied", "Failed", "Again"):
            answers.add_metric([answer.lower()], signer.counts[answer])
        yield answers
        yield GaugeMetricFamily("pincompute_signer_waiting", "Requests that wait for an answer.", signer.waiting)
        ends = "When the signer's own certificate ends."
        yield GaugeMetricFamily("pincompute_signer_ends_timestamp_seconds", ends, signer.issuer.ends)

"""Metrics agent: serves the scrape targets of workloads, and the resources that they use.

Prometheus asks it instead of the API server, so that Prometheus has no account in the cluster at all.
"""

from __future__ import annotations

import asyncio
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

from aiohttp import web
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from pincompute.agents.health import MetricsPage, serve_health
from pincompute.agents.metrics.fair_share import FairShare
from pincompute.agents.metrics.pods import ScrapedPod
from pincompute.agents.metrics.targets import Target, scrape_targets
from pincompute.agents.metrics.use import measured_pods, use_metrics
from pincompute.api.metrics_endpoint import TARGETS_PATH, USE_PATH
from pincompute.api.names import WORKLOAD_LABEL
from pincompute.base.http_process import cancel_on_signal
from pincompute.base.metrics_page import CONTENT_TYPE, exposition
from pincompute.kube.client import Client
from pincompute.kube.informer import Informer
from pincompute.kube.kubeconfig import load_kubeconfig
from pincompute.kube.resource import PODS
from pincompute.platforms.kubernetes.usage import UsageReader


async def run(kubeconfig: Path, listen: str, token_file: Path, pod_range: IPv4Network | IPv6Network) -> None:
    """Runs until a signal."""
    with cancel_on_signal():
        async with Client(load_kubeconfig(kubeconfig), agent="metrics") as client:
            agent = MetricsAgent(client, pod_range)
            page = MetricsPage(token_file, client.request_stats, agent.metrics)
            async with serve_health(listen, agent.pods.staleness_s, page, agent.routes()):
                await agent.run()


class MetricsAgent:
    """Watches the pods of workloads, and answers from what it has seen."""

    def __init__(self, client: Client, pod_range: IPv4Network | IPv6Network, usage: UsageReader | None = None) -> None:
        self.pods = Informer(client, PODS, type=ScrapedPod, labels=WORKLOAD_LABEL)
        self._pod_range = pod_range
        self._usage = usage or UsageReader(client, with_io=True)

    async def run(self) -> None:
        await self.pods.run()

    def routes(self) -> list[web.RouteDef]:
        return [web.get(TARGETS_PATH, self._serve_targets), web.get(USE_PATH, self._serve_use)]

    async def _serve_targets(self, _: web.Request) -> web.Response:
        if not self.pods.synced.is_set():
            # Prometheus keeps the targets that it has; an empty list would end all series.
            return web.Response(status=503, text="the pods are not listed yet\n")
        targets = self._targets().chosen
        return web.json_response([each.to_json() for each in targets])

    def _targets(self) -> FairShare[Target]:
        return scrape_targets(self.pods.items.values(), self._pod_range)

    async def _serve_use(self, _: web.Request) -> web.Response:
        pods = measured_pods(self.pods.items.values())
        stats = await self._usage.stats_of_nodes(pods)
        body = await asyncio.to_thread(exposition, lambda: use_metrics(pods, stats))
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})

    def metrics(self) -> list[Metric]:
        """The agent's own metrics."""
        chosen, left_out = self._targets()
        return [
            GaugeMetricFamily("pincompute_scrape_targets", "Scrape targets of workloads.", len(chosen)),
            GaugeMetricFamily("pincompute_scrape_targets_left_out", "Targets beyond the limits.", left_out),
        ]

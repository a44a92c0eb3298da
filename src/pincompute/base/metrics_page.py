"""Page `/metrics` of a process, in the Prometheus text format, computed from plain counters when it is scraped."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Metric, generate_latest
from prometheus_client.registry import Collector

PATH = "/metrics"
CONTENT_TYPE = CONTENT_TYPE_LATEST
_CollectMetrics = Callable[[], Iterable[Metric]]


class _CollectorOf(Collector):
    def __init__(self, collect: _CollectMetrics) -> None:
        self._collect = collect

    def collect(self) -> Iterable[Metric]:
        return self._collect()


def exposition(collect: _CollectMetrics) -> bytes:
    """The body of the page."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_CollectorOf(collect))
    return generate_latest(registry)


def add_metrics_page(application: web.Application, collect: _CollectMetrics) -> None:
    """Adds the page to an application whose middlewares require the token of the metrics."""

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=exposition(collect), headers={"Content-Type": CONTENT_TYPE})

    application.router.add_get(PATH, metrics)

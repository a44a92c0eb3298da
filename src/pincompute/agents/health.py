"""Health and metrics of an agent."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from aiohttp import web
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from pincompute.base.http_process import serve_http
from pincompute.base.metrics_page import add_metrics_page
from pincompute.base.page_token import token_middlewares
from pincompute.kube.request_metrics import request_metrics
from pincompute.kube.retrying_transport import RequestStats

STALE_AFTER_S = 300.0
"""An agent without a message of the API server for this long, bookmarks included, is unhealthy: its data is stale."""


class MetricsPage(NamedTuple):
    token_file: Path
    """File with the bearer token that the page requires."""
    stats: RequestStats
    own_metrics: Callable[[], Iterable[Metric]] = tuple
    """Metrics of this agent alone."""


@asynccontextmanager
async def serve_health(
    listen: str,
    staleness_s: Callable[[], float],
    metrics: MetricsPage | None = None,
    pages: Iterable[web.RouteDef] = (),
) -> AsyncGenerator[None]:
    """Serves `/healthz` while the block runs, and `/metrics` where there is a token for it.

    `staleness_s` returns the seconds since the API server was heard. Further `pages` require the token, too.
    """

    async def healthz(_: web.Request) -> web.Response:
        seconds = staleness_s()
        text = f"last message of the API server {seconds:.0f} s ago\n"
        return web.Response(text=text, status=200 if seconds < STALE_AFTER_S else 503)

    def agent_metrics() -> Iterator[Metric]:
        yield GaugeMetricFamily(
            "pincompute_agent_cache_age_seconds", "Time since the API server was last heard.", staleness_s()
        )
        if metrics:
            yield from request_metrics(metrics.stats)
            yield from metrics.own_metrics()

    application = web.Application(middlewares=token_middlewares(metrics.token_file if metrics else None))
    application.router.add_get("/healthz", healthz)
    application.add_routes(pages)
    if metrics:
        add_metrics_page(application, agent_metrics)
    async with serve_http(listen, application):
        yield

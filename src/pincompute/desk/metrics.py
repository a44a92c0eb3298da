"""The desk's metrics, on an address of their own: clients of the API cannot reach them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from aiohttp import web
from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from pincompute.base.metrics_page import add_metrics_page
from pincompute.base.page_token import token_middlewares
from pincompute.desk.desk import Desk
from pincompute.desk.http.request_counters import REQUEST_COUNTERS, RequestCounters
from pincompute.desk.limits.connections import ACTIVE_CONNECTIONS, serve_app, track_active_connections
from pincompute.desk.limits.middleware import REQUEST_LIMITER, RequestLimiter

MAX_CONNECTIONS = 64
PlatformMetrics = Callable[[], Iterable[Metric]]
"""Metrics of the requests to the platform, of which the desk knows no details."""


@asynccontextmanager
async def serve_metrics(
    listen: str, token_file: Path, api: web.Application, desk: Desk, platform_metrics: PlatformMetrics
) -> AsyncGenerator[int]:
    """Serves the metrics of an API while the block runs, to callers with the token in the file; yields the port."""
    page = web.Application(middlewares=[track_active_connections, *token_middlewares(token_file)])
    page[ACTIVE_CONNECTIONS] = set()
    add_metrics_page(page, partial(desk_metrics, api, desk, platform_metrics))
    host, _, port = listen.rpartition(":")
    async with serve_app(page, host, int(port), max_connections=MAX_CONNECTIONS) as chosen_port:
        yield chosen_port


def desk_metrics(api: web.Application, desk: Desk, platform_metrics: PlatformMetrics) -> Iterator[Metric]:
    yield from _http_metrics(api[REQUEST_COUNTERS])
    yield from _queue_metrics(api[REQUEST_LIMITER])
    yield from _submission_metrics(desk)
    yield from platform_metrics()


def _http_metrics(counters: RequestCounters) -> Iterator[Metric]:
    requests = CounterMetricFamily(
        "pincompute_desk_requests", "Requests of clients, by route and status.", labels=["method", "route", "status"]
    )
    for (labels, status), count in sorted(counters.requests.items()):
        requests.add_metric([*labels, str(status)], count)
    yield requests
    durations = HistogramMetricFamily(
        "pincompute_desk_request_duration_seconds", "Duration of requests but streams.", labels=["method", "route"]
    )
    for labels, histogram in sorted(counters.durations.items(), key=lambda each: each[0]):
        durations.add_metric(labels, histogram.cumulative_buckets(), histogram.sum_s)
    yield durations


def _queue_metrics(limiter: RequestLimiter) -> Iterator[Metric]:
    requests = GaugeMetricFamily(
        "pincompute_desk_queued_requests", "Admitted requests by queue and state.", labels=["queue", "state"]
    )
    for name, queue in (("reads", limiter.reads), ("writes", limiter.writes)):
        requests.add_metric([name, "running"], queue.running)
        requests.add_metric([name, "waiting"], queue.admitted_count - queue.running)
    yield requests
    yield GaugeMetricFamily(
        "pincompute_desk_open_streams", "Streams that clients read.", limiter.streams.admitted_count
    )


def _submission_metrics(desk: Desk) -> Iterator[Metric]:
    submissions = CounterMetricFamily(
        "pincompute_desk_submissions", "Submissions by outcome; refusals by reason.", labels=["outcome", "reason"]
    )
    for (outcome, reason), count in sorted(desk.pipeline.outcome_counts.items()):
        submissions.add_metric([outcome, reason], count)
    yield submissions
    yield GaugeMetricFamily(
        "pincompute_desk_undelivered_submissions",
        "Accepted submissions that the leader has not delivered yet.",
        desk.pipeline.undelivered_count,
    )

"""Counts requests by method, route and status, and their durations.

A route is counted by its template, and requests of unknown paths together, whatever their method: no client can create
a series. Projects and workloads are not counted by name.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from pincompute.base.clock import Clock
from pincompute.base.histogram import DurationHistogram
from pincompute.desk.limits.middleware import is_stream

DURATION_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_CLIENT_CLOSED_REQUEST = 499
"""Status of a request whose client disconnected before the response, as in the logs of nginx."""


class RequestLabels(NamedTuple):
    method: str
    route: str


_UNKNOWN_ROUTE = RequestLabels("other", "unknown")


class RequestCounters:
    """Totals since the process started."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[RequestLabels, int]] = Counter()
        """By route and status."""
        self.durations: dict[RequestLabels, DurationHistogram] = {}
        """Of all but streams, which last as long as their client reads."""

    def add(self, request: web.Request, status: int, duration_s: float) -> None:
        labels = _labels_of(request)
        self.requests[labels, status] += 1
        if not is_stream(request):
            self.durations.setdefault(labels, DurationHistogram(DURATION_BUCKETS_S)).record_duration(duration_s)


REQUEST_COUNTERS: web.AppKey[RequestCounters] = web.AppKey("request_counters")


def counting_middleware(counters: RequestCounters, clock: Clock) -> Middleware:
    """Stands outside of all other middlewares, so that rejections and waiting times are counted."""

    @web.middleware
    async def count_request(request: web.Request, handler: Handler) -> web.StreamResponse:
        started_s, status = clock.monotonic(), _CLIENT_CLOSED_REQUEST
        try:
            response = await handler(request)
            status = response.status
        except web.HTTPException as error:
            status = error.status
            raise
        else:
            return response
        finally:
            counters.add(request, status, clock.monotonic() - started_s)

    return count_request


def _labels_of(request: web.Request) -> RequestLabels:
    resource = request.match_info.route.resource
    return RequestLabels(request.method, resource.canonical) if resource else _UNKNOWN_ROUTE

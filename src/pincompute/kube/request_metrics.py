"""Metrics of a client's requests to the API server."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily

from pincompute.kube.retrying_transport import RequestStats


def request_metrics(stats: RequestStats) -> Iterator[Metric]:
    labels = ["verb", "resource", "code"]
    requests = CounterMetricFamily(
        "pincompute_api_requests", "Requests to the API server; code 0 if none was received.", labels=labels
    )
    for (verb, resource, code), count in stats.requests.items():
        requests.add_metric([verb, resource, str(code)], count)
    yield requests
    yield CounterMetricFamily("pincompute_api_request_retries", "Requests that were sent again.", stats.retries)

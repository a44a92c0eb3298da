"""The operator's metrics in the Prometheus text format, rendered from plain counters when they are scraped."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from pincompute.controller.cluster_cache import ClusterCache
from pincompute.controller.counters import DURATION_BUCKETS_S, LoopCounters
from pincompute.kube.retrying_transport import RequestStats
from pincompute.operator.manager import ControllerManager


def exposition(manager: ControllerManager) -> bytes:
    """The response body of `/metrics`."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_OperatorCollector(manager))
    return generate_latest(registry)


class _OperatorCollector(Collector):
    def __init__(self, manager: ControllerManager) -> None:
        self._manager = manager

    def collect(self) -> Iterator[Metric]:
        manager = self._manager
        yield _gauge("leader", "1 if this operator is leader, 0 if it stands by.", float(manager.is_leader))
        yield _gauge("workqueue_depth", "Keys that wait for a pass.", manager.loop.queue_length)
        yield _gauge("failing_keys", "Keys with a failed last pass.", manager.loop.failing_count)
        yield _gauge(
            "reconcile_stalled_seconds",
            "Time since a pass last ended while keys wait; 0 if idle.",
            manager.loop.stalled_for_s(),
        )
        yield from _cache_metrics(manager.cache)
        yield from _loop_metrics(manager.loop.counters)
        yield from _request_metrics(manager.client.request_stats)


def _cache_metrics(cache: ClusterCache) -> Iterator[Metric]:
    age = GaugeMetricFamily(
        "pincompute_cache_age_seconds", "Time since the API server was last heard.", labels=["kind"]
    )
    for kind, age_s in cache.ages_s().items():
        age.add_metric([kind], age_s)
    yield age
    failed = GaugeMetricFamily("pincompute_watch_failed", "1 for each kind that cannot be watched.", labels=["kind"])
    for kind in cache.unwatchable_kinds:
        failed.add_metric([kind], 1)
    yield failed
    unreviewed = GaugeMetricFamily(
        "pincompute_unreviewed_workloads",
        "Workloads with an emergency override, by whether it has expired.",
        labels=["project", "expired"],
    )
    for (project, expired), count in sorted(cache.count_unreviewed().items()):
        unreviewed.add_metric([project, str(expired).lower()], count)
    yield unreviewed


def _loop_metrics(counters: LoopCounters) -> Iterator[Metric]:
    passes = CounterMetricFamily("pincompute_reconcile", "Reconcile passes.", labels=["kind", "outcome"])
    for (kind, outcome), count in counters.passes.items():
        passes.add_metric([kind, outcome], count)
    yield passes
    steps = CounterMetricFamily(
        "pincompute_reconcile_steps", "Steps that passes executed, by verb and kind of object.", labels=["verb", "kind"]
    )
    for (verb, kind), count in counters.steps.items():
        steps.add_metric([verb, kind], count)
    yield steps
    bounds = [*(str(each) for each in DURATION_BUCKETS_S), "+Inf"]
    buckets = list(zip(bounds, accumulate(counters.duration_bucket_counts), strict=True))
    yield HistogramMetricFamily(
        "pincompute_reconcile_duration_seconds", "Duration of reconcile passes.", buckets, counters.duration_sum_s
    )


def _request_metrics(stats: RequestStats) -> Iterator[Metric]:
    labels = ["verb", "resource", "code"]
    requests = CounterMetricFamily(
        "pincompute_api_requests", "Requests to the API server; code 0 if none was received.", labels=labels
    )
    for (verb, resource, code), count in stats.requests.items():
        requests.add_metric([verb, resource, str(code)], count)
    yield requests
    yield CounterMetricFamily("pincompute_api_request_retries", "Requests that were sent again.", stats.retries)


def _gauge(name: str, help_text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"pincompute_{name}", help_text, value)

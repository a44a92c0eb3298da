"""The operator's metrics in the Prometheus text format, rendered from plain counters when they are scraped."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from pincompute.controller.cluster_cache import ClusterCache
from pincompute.controller.counters import LoopCounters
from pincompute.kube.request_metrics import request_metrics
from pincompute.operator.manager import ControllerManager


def operator_metrics(manager: ControllerManager) -> Iterator[Metric]:
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
    yield from request_metrics(manager.client.request_stats)


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
    buckets = counters.durations.cumulative_buckets()
    yield HistogramMetricFamily(
        "pincompute_reconcile_duration_seconds", "Duration of reconcile passes.", buckets, counters.durations.sum_s
    )


def _gauge(name: str, help_text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"pincompute_{name}", help_text, value)

"""Metrics of the resources that the pods of workloads use, from the stats of kubelets. Pure.

Totals are of each replica, and never of a workload: a sum of counters falls when a replica ends, and Prometheus would
take that for a restart from zero. Our recording rules add up rates instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from pincompute.agents.metrics.fair_share import fair_share
from pincompute.agents.metrics.pods import ScrapedPod, oldest_first
from pincompute.planning.usage import NodeStats, PodTotals, PodUse, totals_of_pod, use_of_pod

_LABELS = ("project", "workload", "kind", "revision", "replica")
_NANOSECONDS_PER_S = 10**9


class _Replica(NamedTuple):
    pod: ScrapedPod
    use: PodUse
    totals: PodTotals


_COUNTERS: dict[str, tuple[str, Callable[[_Replica], float | None]]] = {
    "cpu_seconds": (
        "Processor time of a replica, its parts included.",
        lambda each: None if each.totals.cpu_nanoseconds is None else each.totals.cpu_nanoseconds / _NANOSECONDS_PER_S,
    ),
    "received_bytes": ("Bytes that a replica received.", lambda each: each.totals.received_bytes),
    "sent_bytes": ("Bytes that a replica sent.", lambda each: each.totals.sent_bytes),
    "restarts": ("Restarts of the containers of a replica.", lambda each: each.pod.restarts),
}
_GAUGES: dict[str, tuple[str, Callable[[_Replica], float | None]]] = {
    "memory_bytes": ("Working set of a replica's own containers.", lambda each: each.use.memory_bytes),
    "memory_limit_bytes": (
        "Memory limit of a replica's own containers.",
        lambda each: _float(each.pod.limit("memory")),
    ),
    "cpu_requested_cores": ("Requested cores of a replica.", lambda each: float(each.pod.requested("cpu"))),
    "disk_bytes": ("Disk of the node that a replica uses.", lambda each: each.totals.disk_bytes),
}


def measured_pods(pods: Iterable[ScrapedPod]) -> list[ScrapedPod]:
    """Running pods that nodes measure, the oldest of each project first, at most so many as are shown."""
    measured = (pod for pod in oldest_first(pods) if pod.is_running and not pod.is_simulated)
    return fair_share(measured, lambda pod: pod.metadata.namespace).chosen


def use_metrics(pods: Sequence[ScrapedPod], stats: Mapping[str, NodeStats]) -> Iterator[Metric]:
    replicas = [_Replica(pod, use_of_pod(pod, stats), totals_of_pod(pod, stats)) for pod in pods]
    for figures, family_type in ((_COUNTERS, CounterMetricFamily), (_GAUGES, GaugeMetricFamily)):
        for name, (description, figure) in figures.items():
            family = family_type(f"pincompute_workload_{name}", description, labels=_LABELS)
            for replica in replicas:
                value = figure(replica)
                # A figure that is not known is no zero.
                if value is not None:
                    labels = replica.pod.labels
                    family.add_metric([labels[each] for each in _LABELS], value)
            yield family
    unknown = sum(1 for each in stats.values() if each.problem)
    yield GaugeMetricFamily("pincompute_unmeasured_nodes", "Nodes whose kubelet reports nothing.", unknown)


def _float(value: object) -> float | None:
    return None if value is None else float(value)  # type: ignore[arg-type]

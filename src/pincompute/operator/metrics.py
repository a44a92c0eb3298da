"""The loops' numbers as Prometheus reads them: taken from plain counters when somebody asks, and never before."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from pincompute.controller.tally import BOUNDS, Tally
from pincompute.kube.sender import Traffic
from pincompute.operator.loops import Loops


def exposition(loops: Loops) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Loops(loops))
    return generate_latest(registry)


class _Loops(Collector):
    def __init__(self, loops: Loops) -> None:
        self._loops = loops

    def collect(self) -> Iterator[Metric]:
        loops = self._loops
        yield _gauge("leads", "1 where this operator acts, 0 where it stands by.", float(loops.leads))
        yield _gauge("waiting", "Keys that wait for a pass.", loops.planned.waiting)
        yield _gauge("failing", "Keys whose last pass did not succeed.", loops.planned.failing)
        yield _gauge("stuck_seconds", "For how long keys have waited and no pass has ended.", loops.planned.stuck())
        age = GaugeMetricFamily("pincompute_view_age_seconds", "Since the API server was last heard.", labels=["kind"])
        for kind, seconds in loops.view.ages().items():
            age.add_metric([kind], seconds)
        yield age
        unseen = GaugeMetricFamily("pincompute_view_unseen", "Kinds that the cluster does not show.", labels=["kind"])
        for kind in loops.view.unseen:
            unseen.add_metric([kind], 1)
        yield unseen
        glass = GaugeMetricFamily(
            "pincompute_unreviewed", "Workloads that nobody has reviewed.", labels=["project", "overdue"]
        )
        for (project, late), count in sorted(loops.view.unreviewed().items()):
            glass.add_metric([project, str(late).lower()], count)
        yield glass
        yield from _passes(loops.planned.tally)
        yield from _requests(loops.client.traffic)


def _passes(tally: Tally) -> Iterator[Metric]:
    passes = CounterMetricFamily("pincompute_passes", "Passes, by how they ended.", labels=["kind", "outcome"])
    for (kind, outcome), count in tally.passes.items():
        passes.add_metric([kind, outcome], count)
    yield passes
    steps = CounterMetricFamily("pincompute_steps", "What passes did.", labels=["verb", "kind"])
    for (verb, kind), count in tally.steps.items():
        steps.add_metric([verb, kind], count)
    yield steps
    bounds = [*(str(each) for each in BOUNDS), "+Inf"]
    buckets = list(zip(bounds, accumulate(tally.took), strict=True))
    yield HistogramMetricFamily("pincompute_pass_seconds", "How long passes took.", buckets, tally.seconds)


def _requests(traffic: Traffic) -> Iterator[Metric]:
    labels = ["verb", "resource", "code"]
    requests = CounterMetricFamily("pincompute_api_requests", "What was asked of the API server.", labels=labels)
    for (verb, resource, code), count in traffic.requests.items():
        requests.add_metric([verb, resource, str(code)], count)
    yield requests
    yield CounterMetricFamily("pincompute_api_retries", "Requests that were sent once more.", traffic.retries)


def _gauge(name: str, what: str, value: float) -> Metric:
    return GaugeMetricFamily(f"pincompute_{name}", what, value)

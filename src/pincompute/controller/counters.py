"""Plain counters of the reconcile loop. `operator.metrics` renders them for Prometheus; the loop does not know it."""

from __future__ import annotations

from collections import Counter

from pincompute.base.histogram import DurationHistogram
from pincompute.controller.passes import Key, Outcome, PassResult

DURATION_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the histogram of pass durations."""
_WORKLOAD_KIND = "Workload"
"""Stands for the kind of keys without one: a workload's key is its project and name alone."""


class LoopCounters:
    """Totals since the process started."""

    def __init__(self) -> None:
        self.passes: Counter[tuple[str, Outcome]] = Counter()
        """Passes by kind and outcome."""
        self.steps: Counter[tuple[str, str]] = Counter()
        """Executed steps by verb and kind, such as (`Apply`, `Deployment`)."""
        self.durations = DurationHistogram(DURATION_BUCKETS_S)

    @property
    def total_passes(self) -> int:
        return sum(self.passes.values())

    def add(self, key: Key, result: PassResult, duration_s: float) -> None:
        self.passes[key.kind or _WORKLOAD_KIND, result.outcome] += 1
        for step in result.steps:
            verb, _, target = step.partition(" ")
            self.steps[verb, target.partition("/")[0]] += 1
        self.durations.record_duration(duration_s)

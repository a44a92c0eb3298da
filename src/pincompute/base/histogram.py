"""Histogram of durations, as Prometheus counts them."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate


class DurationHistogram:
    """Counts durations by bucket."""

    def __init__(self, bounds_s: tuple[float, ...]) -> None:
        self._bounds_s = bounds_s
        self._counts = [0] * (len(bounds_s) + 1)
        self.sum_s = 0.0

    def record_duration(self, duration_s: float) -> None:
        self._counts[bisect_left(self._bounds_s, duration_s)] += 1
        self.sum_s += duration_s

    def cumulative_buckets(self) -> list[tuple[str, float]]:
        """Upper bounds as labels, each with the number of durations up to it."""
        labels = [*(str(each) for each in self._bounds_s), "+Inf"]
        return list(zip(labels, accumulate(self._counts), strict=True))

"""Series of a program, made of its StatsD lines, in the text format of Prometheus. Their number is bounded."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Literal, TypeVar

from pincompute.agents.statsd.lines import Kind, Sample, parse_line

MAX_SERIES = 1000
"""Of all metrics together. A program that puts a user's id into a name or tag must not fill Prometheus."""
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
OTHER_BUCKETS = (1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0, 10000.0)
_LINES, _SERIES = "statsd_lines_total", "statsd_series"
_SUFFIXES: dict[Kind, tuple[str, ...]] = {
    "counter": ("_total",),
    "gauge": ("",),
    "histogram": ("_bucket", "_sum", "_count", ""),
}

V = TypeVar("V")
Labels = tuple[tuple[str, str], ...]
Result = Literal["accepted", "malformed", "dropped"]


class _Histogram:
    """Observations by bucket; those above the last bucket are the last count."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0.0] * (len(bounds) + 1)
        self.sum = 0.0

    def add_observation(self, value: float, weight: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += weight
        self.sum += value * weight


class SeriesStore:
    """Applies lines, and renders all series. Lines that it cannot apply are counted, and never logged."""

    def __init__(self, max_series: int = MAX_SERIES) -> None:
        self._max_series = max_series
        self._families: dict[str, Kind] = {}
        self._numbers: dict[tuple[str, Labels], float] = {}
        self._histograms: dict[tuple[str, Labels], _Histogram] = {}
        self._exposed_names = {_LINES, _SERIES}
        self.line_counts: dict[Result, int] = {"accepted": 0, "malformed": 0, "dropped": 0}
        self.series_count = 0

    def apply_datagram(self, datagram: bytes) -> None:
        for line in datagram.split(b"\n"):
            if line:
                self.line_counts[self._apply_line(line.rstrip(b"\r"))] += 1

    def _apply_line(self, line: bytes) -> Result:
        sample = parse_line(line)
        if sample is None:
            return "malformed"
        return "accepted" if self._apply(sample) else "dropped"

    def _apply(self, sample: Sample) -> bool:
        """False if the name has another type already, or if there are too many series."""
        key = (sample.name, sample.labels)
        if key not in self._numbers and key not in self._histograms and not self._add_series(sample):
            return False
        if self._families[sample.name] != sample.kind:
            return False
        if sample.kind == "histogram":
            self._histograms[key].add_observation(sample.value, sample.weight)
        elif sample.kind == "counter" or sample.is_delta:
            self._numbers[key] += sample.value
        else:
            self._numbers[key] = sample.value
        return True

    def _add_series(self, sample: Sample) -> bool:
        bounds = SECONDS_BUCKETS if sample.name.endswith("_seconds") else OTHER_BUCKETS
        # A histogram is a series for each bucket, one for the infinite bucket, its sum and its count.
        cost = len(bounds) + 3 if sample.kind == "histogram" else 1
        if self.series_count + cost > self._max_series or not self._claim_names(sample):
            return False
        self.series_count += cost
        key = (sample.name, sample.labels)
        if sample.kind == "histogram":
            self._histograms[key] = _Histogram(bounds)
        else:
            self._numbers[key] = 0.0
        return True

    def _claim_names(self, sample: Sample) -> bool:
        """A counter `a` is exposed as `a_total`, which a gauge could be called as well: the first one has the name."""
        if sample.name in self._families:
            return self._families[sample.name] == sample.kind
        names = {f"{_base_name(sample.name, sample.kind)}{suffix}" for suffix in _SUFFIXES[sample.kind]}
        if names & self._exposed_names:
            return False
        self._exposed_names |= names
        self._families[sample.name] = sample.kind
        return True

    def render(self) -> bytes:
        return "".join(f"{line}\n" for line in self._rendered_lines()).encode()

    def _rendered_lines(self) -> Iterator[str]:
        numbers, histograms = _by_family(self._numbers), _by_family(self._histograms)
        for name, kind in sorted(self._families.items()):
            base = _base_name(name, kind)
            yield f"# TYPE {base}{'_total' if kind == 'counter' else ''} {kind}"
            for labels, value in numbers.get(name, ()):
                yield f"{base}{_SUFFIXES[kind][0]}{_braces(labels)} {value!r}"
            for labels, histogram in histograms.get(name, ()):
                yield from _rendered_histogram(base, labels, histogram)
        yield f"# TYPE {_LINES} counter"
        for result, count in self.line_counts.items():
            yield f"{_LINES}{_braces((('result', result),))} {count}"
        yield f"# TYPE {_SERIES} gauge"
        yield f"{_SERIES} {self.series_count}"


def _base_name(name: str, kind: Kind) -> str:
    return name.removesuffix("_total") or name if kind == "counter" else name


def _by_family(series: dict[tuple[str, Labels], V]) -> dict[str, list[tuple[Labels, V]]]:
    families: dict[str, list[tuple[Labels, V]]] = {}
    for (name, labels), value in list(series.items()):
        families.setdefault(name, []).append((labels, value))
    return families


def _rendered_histogram(name: str, labels: Labels, histogram: _Histogram) -> Iterator[str]:
    total = 0.0
    for bound, count in zip((*map(repr, histogram.bounds), "+Inf"), list(histogram.counts), strict=True):
        total += count
        yield f"{name}_bucket{_braces((*labels, ('le', bound)))} {total!r}"
    yield f"{name}_sum{_braces(labels)} {histogram.sum!r}"
    yield f"{name}_count{_braces(labels)} {total!r}"


def _braces(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

"""From measurements to figures: ratios of pairs, their median and spread, and the pairs that are void."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from bench.figures import Figure
from bench.peers.convergence import PHASES, Convergence
from bench.peers.first_sync import FirstSync
from bench.peers.resync import Resync

MAX_SERVER_BUSY = 0.9
"""Above it the API server was the limit, and a comparison of throughput says nothing about the contenders."""

Round = dict[str, Any]
"""The measurements of one round, by contender."""


class Ratio(NamedTuple):
    """A figure that compares us with one peer."""

    id: str
    label: str
    peer: str
    read: Callable[[Any], float]
    bar: float | None = None
    aim: float | None = None
    busy: Callable[[Any], float] | None = None
    """Share of the API server's core, where throughput is compared."""
    higher_is_better: bool = False


def _rate(phase: str) -> Callable[[Convergence], float]:
    def rate(found: Convergence) -> float:
        return found.workloads / found.phases[phase].seconds

    return rate


def _per_workload(phase: str, name: str) -> Callable[[Convergence], float]:
    def share(found: Convergence) -> float:
        return float(getattr(found.phases[phase], name)) / found.workloads

    return share


def _busy(phase: str) -> Callable[[Convergence], float]:
    def busy(found: Convergence) -> float:
        return found.phases[phase].server_busy

    return busy


def _throughput(id_: str, peer: str, phase: str, bar: float | None, aim: float | None) -> Ratio:
    label = f"workloads/s, {phase}, each with a tenth of a core, ours : {peer}"
    return Ratio(id_, label, peer, _rate(phase), bar, aim, _busy(phase), higher_is_better=True)


def _cost(id_: str, phase: str, bar: float | None, aim: float | None) -> Ratio:
    label = f"own CPU seconds per workload, {phase}, ours : {_GO_OPERATOR}"
    return Ratio(id_, label, _GO_OPERATOR, _per_workload(phase, "cpu_s"), bar, aim)


def _request_count(id_: str, phase: str) -> Ratio:
    label = f"API requests per workload, {phase}, ours : {_GO_OPERATOR}"
    return Ratio(id_, label, _GO_OPERATOR, _per_workload(phase, "requests"), 1.0, 0.8)


def _pods_per_second(found: FirstSync) -> float:
    return found.pods / found.seconds


def _pods_per_cpu_second(found: FirstSync) -> float:
    return found.pods / found.cpu_s


def _first_sync(id_: str, peer: str, bar: float | None, aim: float | None) -> Ratio:
    label = f"first sync, pods/s, ours : {peer}"
    busy = attrgetter("server_busy")
    return Ratio(id_, label, peer, _pods_per_second, bar, aim, busy, higher_is_better=True)


def _sync_cost(id_: str, peer: str) -> Ratio:
    label = f"first sync, pods per second of own CPU, ours : {peer}"
    return Ratio(id_, label, peer, _pods_per_cpu_second, higher_is_better=True)


_GO_OPERATOR = "controller-runtime"
CONVERGENCE_RATIOS = (
    _throughput("P1", "kopf", "cold", 3, 5),
    _throughput("P1.edit", "kopf", "edit-1", 3, 5),
    _throughput("P1.tuned", "tuned-kopf", "cold", None, None),
    _throughput("P1.tuned.edit", "tuned-kopf", "edit-1", None, None),
    _throughput("P2", _GO_OPERATOR, "cold", 0.5, 1.0),
    _throughput("P2.edit", _GO_OPERATOR, "edit-1", 0.5, 1.0),
    _cost("P3", "cold", 2, 1),
    _cost("P3.edit", "edit-1", 2, 1),
    _request_count("P4.1", "cold"),
    _request_count("P4.1.edit-1", "edit-1"),
    _request_count("P4.1.edit-2", "edit-2"),
)
FIRST_SYNC_RATIOS = (
    _first_sync("P5.1", "kubernetes", 30, 100),
    _first_sync("P5.2", "lightkube", 1.5, 5),
    _first_sync("P5.3", "client-go", 0.8, 2),
    _first_sync("P5.4", "client-go-protobuf", None, None),
    _sync_cost("P5.1.cpu", "kubernetes"),
    _sync_cost("P5.2.cpu", "lightkube"),
    _sync_cost("P5.3.cpu", "client-go"),
    _sync_cost("P5.4.cpu", "client-go-protobuf"),
    Ratio("P6", "memory per cached pod, ours : client-go", "client-go", attrgetter("bytes_per_pod"), 0.5, 0.25),
)


def convergence_figures(rounds: Sequence[Round]) -> Iterator[Figure]:
    load = _largest(each.phases[phase].load for found in rounds for each in found.values() for phase in PHASES)
    yield from _ratios(CONVERGENCE_RATIOS, rounds, load)
    ours: list[Convergence] = [each["ours"] for each in rounds if "ours" in each]
    if ours:
        writes = [each.settled_writes for each in ours]
        yield Figure("P4.settled", "writes of ours in settled time, without leases", writes, 0, "", aim=0, load=load)


def first_sync_figures(rounds: Sequence[Round]) -> Iterator[Figure]:
    load = _largest(each.load for found in rounds for each in found.values())
    yield from _ratios(FIRST_SYNC_RATIOS, rounds, load)
    ours: list[FirstSync] = [each["ours"] for each in rounds if "ours" in each]
    if ours:
        first, again = [each.peak for each in ours], [each.peak_again for each in ours]
        yield Figure("P7.1", "peak memory of our first sync : settled", first, 1.5, "x", aim=1.2, load=load)
        yield Figure("P7.2", "peak memory of our relist : settled", again, 1.5, "x", aim=1.2, load=load)


def resync_figures(found: Sequence[Resync]) -> Iterator[Figure]:
    if not found:
        return
    load = _largest(each.load for each in found)
    slowest = [p99(each.edit_seconds) for each in found]
    label = f"edit to Deployment written while {found[0].objects:,} objects resync, P99 of {len(found[0].edit_seconds)}"
    yield Figure("P15", label, slowest, 1, "s", aim=0.3, load=load)
    stalls = [each.stall_s * 1e3 for each in found]
    yield Figure("P16", "longest stall of our event loop meanwhile", stalls, 100, "ms", aim=25, load=load)


def p99(seconds: Sequence[float]) -> float:
    return statistics.quantiles(seconds, n=100, method="inclusive")[98] if len(seconds) > 1 else seconds[0]


def _ratios(ratios: Sequence[Ratio], rounds: Sequence[Round], load: float) -> Iterator[Figure]:
    for ratio in ratios:
        pairs = [(each["ours"], each[ratio.peer]) for each in rounds if {"ours", ratio.peer} <= each.keys()]
        if pairs:
            yield _paired(ratio, pairs, load)


def _paired(ratio: Ratio, pairs: Sequence[tuple[Any, Any]], load: float) -> Figure:
    """Median of the pairs that count. If none does, the figure has no values."""
    counted = [
        pair for pair in pairs if ratio.busy is None or all(ratio.busy(each) <= MAX_SERVER_BUSY for each in pair)
    ]
    values = [(ratio.read(ours), ratio.read(peer)) for ours, peer in counted]
    medians = [statistics.median(column) for column in zip(*values, strict=True)] or [None, None]
    return Figure(
        ratio.id,
        ratio.label,
        [first / second for first, second in values],
        ratio.bar,
        "x",
        *medians,
        higher_is_better=ratio.higher_is_better,
        aim=ratio.aim,
        load=load,
        void=len(pairs) - len(counted),
    )


def _largest(loads: Iterator[float] | Sequence[float]) -> float:
    return max(loads, default=0.0)

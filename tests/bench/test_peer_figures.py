"""Figures of the comparison with peers: ratios of pairs, void pairs, and figures without a peer."""

from __future__ import annotations

import pytest
from bench.peers.convergence import PHASES, Convergence, Phase
from bench.peers.first_sync import FirstSync
from bench.peers.results import convergence_figures, first_sync_figures, p99, resync_figures
from bench.peers.resync import Resync


def convergence(name: str, seconds: float, *, busy: float = 0.5, settled: int = 0) -> Convergence:
    phase = Phase(seconds, seconds / 10, 70, 70, {}, 1.0, busy, 2.0)
    return Convergence(name, 10, dict.fromkeys(PHASES, phase), settled, settled)


def first_sync(name: str, seconds: float, *, bytes_per_pod: float = 2048, peak_again: float = 0) -> FirstSync:
    return FirstSync(name, 1000, seconds, seconds, bytes_per_pod, 1.1, peak_again, 0.5, 1.0)


def test_ratio_is_median_of_pairs_of_one_round():
    rounds = [
        {"ours": convergence("ours", 1), "kopf": convergence("kopf", 2)},
        {"ours": convergence("ours", 10), "kopf": convergence("kopf", 40)},
        {"ours": convergence("ours", 1), "kopf": convergence("kopf", 3)},
    ]
    figure = next(each for each in convergence_figures(rounds) if each.id == "P1")
    assert figure.values == [2, 4, 3]
    assert (figure.value, figure.ours, figure.peer) == (3, 10, pytest.approx(10 / 3))
    assert figure.passes


def test_pair_is_void_if_api_server_was_the_limit_for_either():
    rounds = [
        {"ours": convergence("ours", 1), "kopf": convergence("kopf", 2, busy=0.95)},
        {"ours": convergence("ours", 1, busy=0.91), "kopf": convergence("kopf", 2)},
        {"ours": convergence("ours", 1), "kopf": convergence("kopf", 4)},
    ]
    figure = next(each for each in convergence_figures(rounds) if each.id == "P1")
    assert (list(figure.values), figure.void) == ([4], 2)


def test_figure_has_no_values_if_all_pairs_are_void():
    rounds = [{"ours": convergence("ours", 1, busy=1), "kopf": convergence("kopf", 2)}]
    figure = next(each for each in convergence_figures(rounds) if each.id == "P1")
    assert (list(figure.values), figure.void, figure.ours) == ([], 1, None)


def test_cost_counts_also_while_api_server_is_the_limit():
    rounds = [{"ours": convergence("ours", 1, busy=1), "controller-runtime": convergence("go", 2, busy=1)}]
    figures = {each.id: each for each in convergence_figures(rounds)}
    assert figures["P3"].values == [0.5]
    assert not figures["P2"].values


def test_missing_peer_has_no_figure():
    figures = list(convergence_figures([{"ours": convergence("ours", 1)}]))
    assert [each.id for each in figures] == ["P4.settled"]


def test_settled_write_misses_the_bar():
    figures = list(convergence_figures([{"ours": convergence("ours", 1, settled=1)}]))
    assert not figures[-1].passes


def test_first_sync_compares_speed_memory_and_peaks():
    ours = first_sync("ours", 1, bytes_per_pod=1024.0, peak_again=1.6)
    figures = {each.id: each for each in first_sync_figures([{"ours": ours, "client-go": first_sync("client-go", 2)}])}
    assert (figures["P5.3"].value, figures["P6"].value) == (2, 0.5)
    assert (figures["P7.1"].passes, figures["P7.2"].passes) == (True, False)
    assert "P5.1" not in figures


def test_resync_takes_percentile_of_each_run_and_stalls_in_milliseconds():
    runs = [Resync(700, [0.1] * 99 + [0.9], 0.02, 200, 1.0), Resync(700, [0.2] * 100, 0.03, 200, 1.0)]
    figures = {each.id: each for each in resync_figures(runs)}
    assert figures["P15"].values[1] == pytest.approx(0.2)
    assert figures["P16"].values == [pytest.approx(20), pytest.approx(30)]
    assert list(resync_figures([])) == []


def test_percentile_of_one_value_is_the_value():
    assert p99([0.5]) == 0.5
    assert p99(list(range(101))) == pytest.approx(99)

"""A client may send its rate, and not more."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from pincompute.desk.limits.rate_limiter import MAX_TRACKED_CLIENTS, RateLimiter


@given(st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 3)), max_size=200))
def test_rate_holds_over_every_interval_and_a_client_within_it_never_waits(asked: list[tuple[str, float]]) -> None:
    rate, burst_s = 5.0, 2.0
    limiter, now = RateLimiter(rate, burst_s), 0.0
    sent: dict[str, list[float]] = {"a": [], "b": []}
    for client, later in asked:
        now += later
        wait_s = limiter.wait_s(client, now)
        times = sent[client]
        if wait_s:
            # The told delay is sufficient, and not longer than necessary.
            assert limiter.wait_s(client, now + wait_s) < 1e-9 < limiter.wait_s(client, now + wait_s * 0.99)
            continue
        limiter.charge(client, now)
        times.append(now)
        for begin in times:
            assert sum(begin <= each for each in times) <= rate * (now - begin + burst_s) + 1e-6
    steady = RateLimiter(rate, burst_s)
    for number in range(50):
        assert not steady.wait_s("c", number / rate)
        steady.charge("c", number / rate)


def test_slowest_rate_allows_one_request() -> None:
    limiter = RateLimiter(0.001, 5.0)
    assert not limiter.wait_s("a", 0.0)
    limiter.charge("a", 0.0)
    assert limiter.wait_s("a", 1.0) == 999.0


@given(st.floats(0, 1e9), st.floats(1e-6, 1e4), st.floats(0, 60))
def test_first_request_is_allowed_at_any_time(now: float, rate: float, burst_s: float) -> None:
    assert not RateLimiter(rate, burst_s).wait_s("a", now)


def test_rate_zero_is_unlimited() -> None:
    limiter = RateLimiter(0.0, 5.0)
    for _ in range(1_000):
        assert not limiter.wait_s("a", 0.0)
        limiter.charge("a", 0.0)


@pytest.mark.parametrize("interval_s", [0.0, 100.0])
def test_number_of_tracked_clients_is_bounded(interval_s: float) -> None:
    limiter = RateLimiter(1.0, 1.0)
    for number in range(3 * MAX_TRACKED_CLIENTS):
        limiter.charge(str(number), number * interval_s)
        assert len(limiter._debt_until) <= MAX_TRACKED_CLIENTS  # noqa: SLF001
    last = 3 * MAX_TRACKED_CLIENTS - 1
    assert limiter.wait_s(str(last), last * interval_s)

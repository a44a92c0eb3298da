"""How often somebody may ask: never more than that, and never less."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pincompute.planning.pace import MOST, Pace


@given(st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 3)), max_size=200))
def test_no_more_than_so_many_and_who_keeps_to_it_is_never_told_to_wait(asked: list[tuple[str, float]]) -> None:
    rate, seconds = 5.0, 2.0
    pace, now = Pace(rate, seconds), 0.0
    taken: dict[str, list[float]] = {"a": [], "b": []}
    for client, later in asked:
        now += later
        wait = pace.wait(client, now)
        others = taken[client]
        if wait:
            # It is worth coming back then, and not before.
            assert pace.wait(client, now + wait) < 1e-9 < pace.wait(client, now + wait * 0.99)
            continue
        pace.take(client, now)
        others.append(now)
        for began in others:
            assert sum(began <= each for each in others) <= rate * (now - began + seconds) + 1e-6
    alone = Pace(rate, seconds)
    for number in range(50):
        assert not alone.wait("c", number / rate)
        alone.take("c", number / rate)


def test_the_slowest_pace_lets_one_through() -> None:
    pace = Pace(0.001, 5.0)
    assert not pace.wait("a", 0.0)
    pace.take("a", 0.0)
    assert pace.wait("a", 1.0) == 999.0


def test_without_a_rate_nobody_waits() -> None:
    pace = Pace(0.0, 5.0)
    for _ in range(1_000):
        assert not pace.wait("a", 0.0)
        pace.take("a", 0.0)


@pytest.mark.parametrize("later", [0.0, 100.0])
def test_what_is_kept_in_mind_is_bounded(later: float) -> None:
    pace = Pace(1.0, 1.0)
    for number in range(3 * MOST):
        pace.take(str(number), number * later)
        assert len(pace._spent) <= MOST  # noqa: SLF001
    assert pace.wait(str(3 * MOST - 1), (3 * MOST - 1) * later)

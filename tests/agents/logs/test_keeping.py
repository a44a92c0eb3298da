"""What is kept: never more than all may take, the last lines for as long as there is room, and nobody's for ever."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pincompute.agents.logs.keeping import DAY, Limits, Lying, decide

SHORT = 100
LIMITS = Limits(total=5_000, days=7, lines=200, lives=3)
STREAMS = st.lists(
    st.builds(
        Lying,
        place=st.uuids().map(str),
        pod=st.sampled_from(["a", "b", "c"]),
        container=st.sampled_from(["web", "side"]),
        restart=st.integers(0, 9),
        size=st.integers(0, 3_000),
        gone=st.one_of(st.just(-1.0), st.floats(0, 9 * DAY)),
    ),
    max_size=12,
    unique_by=lambda each: (each.pod, each.container, each.restart),
)


@given(STREAMS)
def test_all_together_take_no_more_than_they_may_but_for_the_last_lines_of_what_is_there(lying: list[Lying]) -> None:
    decision = decide(lying, LIMITS, SHORT)
    left = [each for each in lying if each not in decision.removed]
    size = sum(min(each.size, SHORT) if each in decision.shortened else each.size for each in left)
    assert size <= LIMITS.total or all(
        (each.gone < 0 and min(each.size, SHORT) == each.size) or each in decision.shortened for each in left
    )


@given(STREAMS)
def test_nothing_is_touched_while_there_is_room(lying: list[Lying]) -> None:
    decision = decide(lying, LIMITS._replace(total=10**9, lives=10), SHORT)
    assert decision.shortened == ()
    assert set(decision.removed) == {each for each in lying if each.gone > 7 * DAY}


@given(STREAMS)
def test_the_newest_lives_are_those_that_are_kept(lying: list[Lying]) -> None:
    removed = decide(lying, LIMITS._replace(total=10**9, days=100), SHORT).removed
    for each in removed:
        same = [other for other in lying if (other.pod, other.container) == (each.pod, each.container)]
        assert sum(other.restart > each.restart for other in same) >= LIMITS.lives


def test_what_has_been_gone_the_longest_is_shortened_first() -> None:
    old, new, there = (Lying(name, name, "web", 0, 3_000, gone) for name, gone in (("o", 9.0), ("n", 1.0), ("t", -1.0)))
    assert decide([there, new, old], LIMITS, SHORT) == ((old, new), ())
    assert decide([there, old], LIMITS, SHORT) == ((old,), ())

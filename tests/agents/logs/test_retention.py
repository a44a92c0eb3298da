"""Retention: size limits, shortening before removal, and expiry."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pincompute.agents.logs.retention import DAY_S, RetentionLimits, StoredStream, plan_retention

SHORTENED_BYTES = 100
LIMITS = RetentionLimits(total_bytes=5_000, max_age_days=7, min_lines=200, max_runs=3)
STREAMS = st.lists(
    st.builds(
        StoredStream,
        relative_path=st.uuids().map(str),
        pod=st.sampled_from(["a", "b", "c"]),
        container=st.sampled_from(["web", "side"]),
        restart=st.integers(0, 9),
        size_bytes=st.integers(0, 3_000),
        deleted_for_s=st.one_of(st.just(-1.0), st.floats(0, 9 * DAY_S)),
    ),
    max_size=12,
    unique_by=lambda each: (each.pod, each.container, each.restart),
)


@given(STREAMS)
def test_stays_within_limit_except_last_lines_of_existing_pods(
    stored: list[StoredStream],
) -> None:
    plan = plan_retention(stored, LIMITS, SHORTENED_BYTES)
    left = [each for each in stored if each not in plan.to_remove]
    size = sum(min(each.size_bytes, SHORTENED_BYTES) if each in plan.to_shorten else each.size_bytes for each in left)
    assert size <= LIMITS.total_bytes or all(
        (each.deleted_for_s < 0 and min(each.size_bytes, SHORTENED_BYTES) == each.size_bytes) or each in plan.to_shorten
        for each in left
    )


@given(STREAMS)
def test_keeps_everything_within_limits(stored: list[StoredStream]) -> None:
    plan = plan_retention(stored, LIMITS._replace(total_bytes=10**9, max_runs=10), SHORTENED_BYTES)
    assert plan.to_shorten == ()
    assert set(plan.to_remove) == {each for each in stored if each.deleted_for_s > 7 * DAY_S}


@given(STREAMS)
def test_keeps_newest_runs(stored: list[StoredStream]) -> None:
    removed = plan_retention(stored, LIMITS._replace(total_bytes=10**9, max_age_days=100), SHORTENED_BYTES).to_remove
    for stream in removed:
        same = [other for other in stored if (other.pod, other.container) == (stream.pod, stream.container)]
        assert sum(other.restart > stream.restart for other in same) >= LIMITS.max_runs


def test_shortens_streams_of_oldest_deletion_first() -> None:
    old, new, existing = (
        StoredStream(name, name, "web", 0, 3_000, gone) for name, gone in (("o", 9.0), ("n", 1.0), ("t", -1.0))
    )
    assert plan_retention([existing, new, old], LIMITS, SHORTENED_BYTES) == ((old, new), ())
    assert plan_retention([existing, old], LIMITS, SHORTENED_BYTES) == ((old,), ())

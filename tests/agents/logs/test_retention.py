"""Retention: limits of pods, projects and the store, shortening before removal, and expiry."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, strategies as st

from pincompute.agents.logs.retention import (
    DAY_S,
    MIN_GAIN_BYTES,
    RetentionLimits,
    RetentionPlan,
    StoredStream,
    common_limit,
    plan_retention,
)

UNLIMITED = RetentionLimits(project_bytes=10**12, pod_bytes=10**12, total_bytes=10**12, shortened_bytes=1_000)
LIMITS = UNLIMITED._replace(
    total_bytes=50_000, project_bytes=40_000, pod_bytes=20_000, max_runs=3, pod_files=4, project_streams=12,
    total_streams=16,
)  # fmt: skip
STREAMS = st.lists(
    st.builds(
        StoredStream,
        project=st.sampled_from(["ads", "search"]),
        pod=st.sampled_from(["a", "b", "c"]),
        container=st.sampled_from(["web", "side", "x.log", "y.log", "z.log", "u.log", "v.log"]),
        restart=st.integers(0, 9),
        size_bytes=st.integers(0, 30_000),
        deleted_for_s=st.one_of(st.just(-1.0), st.floats(0, 9 * DAY_S)),
        written=st.integers(0, 1000),
    ),
    max_size=24,
    unique_by=lambda each: (each.pod, each.container, each.restart),
)


def stream(project: str, size_bytes: int, *, deleted_for_s: float = -1.0, written: int = 0) -> StoredStream:
    return StoredStream(project, f"{project}-{written}", "web", 0, size_bytes, deleted_for_s, written)


def sizes_after(plan: RetentionPlan, stored: list[StoredStream], limits: RetentionLimits) -> dict[StoredStream, int]:
    sizes = {each: each.size_bytes for each in stored if each not in plan.to_remove}
    return sizes | dict.fromkeys(plan.to_shorten, limits.shortened_bytes) | dict.fromkeys(plan.to_clear, 0)


@given(STREAMS)
def test_stays_within_every_limit(stored: list[StoredStream]) -> None:
    sizes = sizes_after(plan_retention(stored, LIMITS), stored, LIMITS)
    uncleared = MIN_GAIN_BYTES * len(stored)
    assert sum(sizes.values()) <= LIMITS.total_bytes + uncleared
    for project in ("ads", "search"):
        assert sum(size for each, size in sizes.items() if each.project == project) <= LIMITS.project_bytes + uncleared
    for pod, files in Counter(each.pod for each in sizes if each.is_file).items():
        assert files <= LIMITS.pod_files
        assert sum(size for each, size in sizes.items() if each.pod == pod) <= LIMITS.pod_bytes + uncleared


@given(STREAMS)
def test_work_is_proportional_to_what_it_frees(stored: list[StoredStream]) -> None:
    """A stream is rewritten only if that frees more than it writes, and another run finds nothing to do."""
    plan = plan_retention(stored, LIMITS)
    assert all(each.size_bytes > 2 * LIMITS.shortened_bytes for each in plan.to_shorten)
    assert all(each.size_bytes > MIN_GAIN_BYTES for each in plan.to_clear)
    sizes = sizes_after(plan, stored, LIMITS)
    assert not any(plan_retention([each._replace(size_bytes=size) for each, size in sizes.items()], LIMITS))


@given(STREAMS)
def test_keeps_everything_within_limits(stored: list[StoredStream]) -> None:
    plan = plan_retention(stored, UNLIMITED._replace(max_runs=10))
    assert (plan.to_shorten, plan.to_clear) == ((), ())
    assert set(plan.to_remove) == {each for each in stored if each.deleted_for_s > 7 * DAY_S}


@given(STREAMS)
def test_keeps_newest_runs(stored: list[StoredStream]) -> None:
    limits = UNLIMITED._replace(max_age_days=100, max_runs=3)
    for removed in plan_retention(stored, limits).to_remove:
        same = [other for other in stored if (other.pod, other.container) == (removed.pod, removed.container)]
        assert sum(other.restart > removed.restart for other in same) >= limits.max_runs


def test_shortens_streams_of_oldest_deletion_first() -> None:
    old, new, existing = (
        stream("ads", 20_000, deleted_for_s=gone, written=number) for number, gone in enumerate((9.0, 1.0, -1.0))
    )
    limits = UNLIMITED._replace(total_bytes=30_000)
    assert plan_retention([existing, new, old], limits).to_shorten == (old, new)
    assert plan_retention([existing, old], limits).to_shorten == (old,)


def test_largest_project_is_reduced_alone() -> None:
    small = [stream("search", 4_000, deleted_for_s=5 * DAY_S, written=number) for number in range(2)]
    large = [stream("ads", 10_000, written=number) for number in range(2, 8)]
    plan = plan_retention([*small, *large], UNLIMITED._replace(total_bytes=30_000))
    assert {each.project for each in (*plan.to_shorten, *plan.to_clear, *plan.to_remove)} == {"ads"}


def test_existing_pods_keep_their_positions() -> None:
    plan = plan_retention([stream("ads", 1_500, written=number) for number in range(40)], LIMITS)
    assert plan.to_remove == ()
    assert plan.to_clear


def test_common_limit_reduces_only_the_largest() -> None:
    assert common_limit({"a": 10, "b": 50, "c": 100}, 100) == 45
    assert common_limit({"a": 10, "b": 20}, 100) == 20
    assert common_limit({"a": 100, "b": 100}, 100) == 50
    assert common_limit({}, 100) == 0

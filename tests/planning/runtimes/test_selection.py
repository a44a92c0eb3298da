"""Selection of a workload's runtime: holds, waves, and the runtime it started with."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from pincompute.api.runtime import Roll, RollCursor
from pincompute.api.status import SUCCEEDED, Progress
from pincompute.api.workload import Tier
from pincompute.planning.runtimes.selection import Runtimes, choose_runtime, hold_left_s
from pincompute.planning.runtimes.waves import (
    ZONE_LABEL,
    RollWave,
    roll_waves,
    rollout_bucket,
    wave_after,
    wave_has_reached,
    wave_position,
)
from runtime_builders import DONE_AT, NOW, build_part, build_resource, build_runtime, build_runtimes, build_service

PARTS = (build_part("logs-1"), build_part("logs-2"))
TWO = (*PARTS, build_runtime(41, "logs-1", done=DONE_AT), build_runtime(42, "logs-2", done=DONE_AT))


def rolling(percent: int) -> Runtimes:
    cursor = {"percent": percent, "since": DONE_AT}
    return build_runtimes(
        *PARTS, build_runtime(41, "logs-1", done=DONE_AT), build_runtime(42, "logs-2", roll={}, cursor=cursor)
    )


def test_no_runtime_and_no_problem_without_runtimes() -> None:
    assert choose_runtime(build_service(hold={"runtime": 7, "until": "2026-12-31"}), Runtimes(), NOW).number == 0


def test_in_a_cluster_the_newest_done_runtime_is_current() -> None:
    assert build_runtimes(*PARTS, build_runtime(41, "logs-1")).current == 0
    assert build_runtimes(*PARTS, build_runtime(41, "logs-1", roll={})).next == 41
    assert build_runtimes(*TWO).current == 42
    assert (
        build_runtimes(
            *PARTS,
            build_runtime(41, "logs-1", done=DONE_AT),
            build_runtime(42, "logs-2", done=DONE_AT, roll={"stopped": "ann"}),
        ).current
        == 41
    )


def test_at_most_one_runtime_is_next() -> None:
    runtimes = build_runtimes(*TWO, build_runtime(43, "logs-1", roll={}), build_runtime(44, "logs-1", roll={}))
    assert (runtimes.current, runtimes.next) == (42, 43)


@pytest.mark.parametrize(("rolls", "current"), [((None, None), 42), ((None, {}), 41), (({}, {}), 42)])
def test_in_a_folder_the_newest_runtime_without_a_roll_is_current(
    rolls: tuple[dict[str, object] | None, ...], current: int
) -> None:
    files = [
        build_resource(
            {
                "kind": "Runtime",
                "metadata": {"name": str(number)},
                "spec": {"parts": ["logs-1"]} | ({"roll": roll} if roll is not None else {}),
            }
        )
        for number, roll in zip((41, 42), rolls, strict=True)
    ]
    assert build_runtimes(*files).current == current


@pytest.mark.parametrize(
    ("until", "number"), [("2026-01-30", 42), ("2026-01-31", 41), ("2026-02-01", 41), ("9999-12-31", 41)]
)
def test_hold_is_valid_until_the_end_of_its_last_day(until: str, number: int) -> None:
    chosen = choose_runtime(build_service(hold={"runtime": 41, "until": until}), build_runtimes(*TWO), NOW)
    assert (chosen.number, chosen.problems) == (number, ())


def test_hold_left_counts_down_to_the_end_of_the_day() -> None:
    held = build_service(hold={"runtime": 41, "until": "2026-01-31"})
    assert hold_left_s(held, NOW) == timedelta(hours=12).total_seconds()
    assert hold_left_s(held, NOW + timedelta(hours=12)) is None
    assert hold_left_s(build_service(), NOW) is None


def test_hold_on_a_newer_runtime_has_no_effect() -> None:
    assert choose_runtime(build_service(hold={"runtime": 42, "until": "2026-12-31"}), rolling(1), NOW).number in {
        41,
        42,
    }
    assert (
        choose_runtime(build_service(hold={"runtime": 42, "until": "2026-12-31"}), build_runtimes(*TWO), NOW).number
        == 42
    )


def test_hold_on_a_missing_runtime_lists_the_runtimes() -> None:
    (problem,) = choose_runtime(
        build_service(hold={"runtime": 40, "until": "2026-12-31"}), build_runtimes(*TWO), NOW
    ).problems
    assert problem.note == "the runtimes are 41, 42"
    assert (
        choose_runtime(build_service(hold={"runtime": 40, "until": "2026-01-01"}), build_runtimes(*TWO), NOW).problems
        == ()
    )


def test_security_fix_breaks_holds_when_its_wave_arrives() -> None:
    breaking = {"security": "CVE-2026-1234", "breakHolds": True}
    cursor = {"percent": 50, "since": DONE_AT}
    known = build_runtimes(
        *PARTS, build_runtime(41, "logs-1", done=DONE_AT), build_runtime(42, "logs-2", roll=breaking, cursor=cursor)
    )
    for uid in map(str, range(40)):
        owner = build_service(uid=uid, hold={"runtime": 41, "until": "2026-12-31"})
        assert choose_runtime(owner, known, NOW).number == (42 if rollout_bucket(owner) < 50 else 41)


def test_wave_reaches_its_share_of_workloads() -> None:
    fleet = [build_service(uid=f"uid-{number}") for number in range(2000)]
    for percent in (5, 25, 100):
        share = sum(choose_runtime(each, rolling(percent), NOW).number == 42 for each in fleet) / len(fleet)
        assert abs(share - percent / 100) < 0.03


def test_wave_reaches_exactly_the_buckets_below_its_percentage() -> None:
    fleet = [build_service(uid=f"uid-{number}") for number in range(300)]
    assert any(rollout_bucket(each) == 25 for each in fleet)
    for workload in fleet:
        assert wave_has_reached(workload, Roll(), RollCursor(percent=25)) == (rollout_bucket(workload) < 25)


def test_hold_on_the_security_fix_itself_is_valid() -> None:
    breaking = {"security": "CVE-2026-1234", "breakHolds": True}
    rolls = (build_runtime(42, "logs-2", roll=breaking, done=DONE_AT), build_runtime(43, "logs-1", done=DONE_AT))
    known = build_runtimes(*PARTS, build_runtime(41, "logs-1", done=DONE_AT), *rolls)
    held = [
        choose_runtime(build_service(hold={"runtime": each, "until": "2026-12-31"}), known, NOW).number
        for each in (41, 42)
    ]
    assert held == [43, 42]


def test_runtime_older_than_the_current_one_is_not_rolled_out() -> None:
    runtimes = build_runtimes(*PARTS, build_runtime(41, "logs-1", roll={}), build_runtime(42, "logs-2", done=DONE_AT))
    assert (runtimes.current, runtimes.next) == (42, 0)


def test_workload_keeps_the_runtime_in_later_waves() -> None:
    fleet = [build_service(uid=f"uid-{number}") for number in range(300)]
    have: set[int] = set()
    for percent in range(1, 101):
        now = {index for index, each in enumerate(fleet) if choose_runtime(each, rolling(percent), NOW).number == 42}
        assert have <= now
        have = now
    assert len(have) == len(fleet)


def test_bucket_depends_on_the_name_without_a_uid() -> None:
    assert rollout_bucket(build_service("a")) == rollout_bucket(build_service("a"))
    assert len({rollout_bucket(build_service(name)) for name in "abcdefgh"}) > 1


ROLL = Roll(waves=[50, 100], zones=["a", "b"], tiers=[Tier.PREEMPTIBLE])


def test_waves_are_ordered_by_zone_and_tier_with_unlisted_ones_last() -> None:
    texts = [each.text(ROLL) for each in roll_waves(ROLL)]
    assert texts[:4] == [
        "50% of preemptible in zone a",
        "100% of preemptible in zone a",
        "50% of zone a",
        "100% of zone a",
    ]
    assert texts[-2:] == ["50% of the others", "100% of the others"]
    assert len(texts) == 12


def test_cursor_visits_every_wave_once() -> None:
    cursor: RollCursor | None = None
    visited: list[RollWave] = []
    while (wave := wave_after(ROLL, cursor)) is not None:
        cursor = RollCursor(zone=wave.zone, tier=wave.tier, percent=wave.percent)
        visited.append(wave)
        assert wave_position(ROLL, cursor) == (len(visited), 12)
    assert tuple(visited) == roll_waves(ROLL)


def test_percentages_may_change_during_a_roll() -> None:
    cursor = RollCursor(percent=25)
    following_wave = wave_after(Roll(waves=[10, 30, 100]), cursor)
    assert following_wave is not None
    assert following_wave.percent == 30


def test_wave_reaches_workloads_by_zone_and_tier() -> None:
    cursor = RollCursor(zone="b", tier="preemptible", percent=100)
    in_zone = {"spec": {"nodeSelector": {ZONE_LABEL: "a"}}}
    assert wave_has_reached(build_service(template=in_zone), ROLL, cursor)
    in_zone["spec"]["nodeSelector"][ZONE_LABEL] = "b"
    assert wave_has_reached(build_service(template=in_zone, tier="preemptible"), ROLL, cursor)
    assert not wave_has_reached(build_service(template=in_zone), ROLL, cursor)
    assert not wave_has_reached(build_service(tier="preemptible"), ROLL, cursor)


def test_finite_work_keeps_the_runtime_it_started_with(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = build_service()
    monkeypatch.setattr(type(owner), "GOAL", SUCCEEDED)
    begun = msgspec.structs.replace(
        owner, status=msgspec.structs.replace(owner.status, runtime=41, progress=Progress())
    )
    assert choose_runtime(owner, build_runtimes(*TWO), NOW).number == 42
    assert choose_runtime(begun, build_runtimes(*TWO), NOW).number == 41
    (problem,) = choose_runtime(begun, build_runtimes(*PARTS, build_runtime(42, "logs-2", done=DONE_AT)), NOW).problems
    assert problem.what == "it started with runtime 41, which was deleted since"

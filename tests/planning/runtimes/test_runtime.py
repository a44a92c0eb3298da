"""Which runtime a workload has: holds, waves and what it began with."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from fleets import DONE, NOW, noun, part, runtime, runtimes, service
from pincompute.api.runtime import Cursor, Roll
from pincompute.api.status import SUCCEEDED, Progress
from pincompute.api.workload import Tier
from pincompute.planning.runtimes.runtime import Runtimes, hold_left, runtime_of
from pincompute.planning.runtimes.waves import ZONE, Wave, bucket, counted, following, reached, waves

PARTS = (part("logs-1"), part("logs-2"))
TWO = (*PARTS, runtime(41, "logs-1", done=DONE), runtime(42, "logs-2", done=DONE))


def rolling(percent: int) -> Runtimes:
    cursor = {"percent": percent, "since": DONE}
    return runtimes(*PARTS, runtime(41, "logs-1", done=DONE), runtime(42, "logs-2", roll={}, cursor=cursor))


def test_where_nothing_is_known_of_runtimes_nothing_is_asked() -> None:
    assert runtime_of(service(hold={"runtime": 7, "until": "2026-12-31"}), Runtimes(), NOW).number == 0


def test_in_a_cluster_only_what_is_done_is_current() -> None:
    assert runtimes(*PARTS, runtime(41, "logs-1")).current == 0
    assert runtimes(*PARTS, runtime(41, "logs-1", roll={})).next == 41
    assert runtimes(*TWO).current == 42
    assert (
        runtimes(
            *PARTS, runtime(41, "logs-1", done=DONE), runtime(42, "logs-2", done=DONE, roll={"stopped": "ann"})
        ).current
        == 41
    )


def test_at_most_one_is_under_way() -> None:
    found = runtimes(*TWO, runtime(43, "logs-1", roll={}), runtime(44, "logs-1", roll={}))
    assert (found.current, found.next) == (42, 43)


@pytest.mark.parametrize(("rolls", "current"), [((None, None), 42), ((None, {}), 41), (({}, {}), 42)])
def test_in_a_folder_the_newest_that_has_no_roll_is_current(
    rolls: tuple[dict[str, object] | None, ...], current: int
) -> None:
    files = [
        noun(
            {
                "kind": "Runtime",
                "metadata": {"name": str(number)},
                "spec": {"parts": ["logs-1"]} | ({"roll": roll} if roll is not None else {}),
            }
        )
        for number, roll in zip((41, 42), rolls, strict=True)
    ]
    assert runtimes(*files).current == current


@pytest.mark.parametrize(
    ("until", "number"), [("2026-01-30", 42), ("2026-01-31", 41), ("2026-02-01", 41), ("9999-12-31", 41)]
)
def test_a_hold_counts_to_the_end_of_its_last_day(until: str, number: int) -> None:
    chosen = runtime_of(service(hold={"runtime": 41, "until": until}), runtimes(*TWO), NOW)
    assert (chosen.number, chosen.problems) == (number, ())


def test_the_end_of_a_hold_is_looked_at_again() -> None:
    held = service(hold={"runtime": 41, "until": "2026-01-31"})
    assert hold_left(held, NOW) == timedelta(hours=12).total_seconds()
    assert hold_left(held, NOW + timedelta(hours=12)) is None
    assert hold_left(service(), NOW) is None


def test_a_hold_keeps_nobody_from_what_is_older_still() -> None:
    assert runtime_of(service(hold={"runtime": 42, "until": "2026-12-31"}), rolling(1), NOW).number in {41, 42}
    assert runtime_of(service(hold={"runtime": 42, "until": "2026-12-31"}), runtimes(*TWO), NOW).number == 42


def test_a_hold_on_what_is_gone_lists_what_there_is() -> None:
    (problem,) = runtime_of(service(hold={"runtime": 40, "until": "2026-12-31"}), runtimes(*TWO), NOW).problems
    assert problem.note == "the runtimes are 41, 42"
    assert runtime_of(service(hold={"runtime": 40, "until": "2026-01-01"}), runtimes(*TWO), NOW).problems == ()


def test_security_breaks_holds_when_its_wave_has_come() -> None:
    breaking = {"security": "CVE-2026-1234", "breakHolds": True}
    cursor = {"percent": 50, "since": DONE}
    known = runtimes(*PARTS, runtime(41, "logs-1", done=DONE), runtime(42, "logs-2", roll=breaking, cursor=cursor))
    for uid in map(str, range(40)):
        owner = service(uid=uid, hold={"runtime": 41, "until": "2026-12-31"})
        assert runtime_of(owner, known, NOW).number == (42 if bucket(owner) < 50 else 41)


def test_a_wave_reaches_its_share_and_newcomers_fall_in() -> None:
    fleet = [service(uid=f"uid-{number}") for number in range(2000)]
    for percent in (5, 25, 100):
        share = sum(runtime_of(each, rolling(percent), NOW).number == 42 for each in fleet) / len(fleet)
        assert abs(share - percent / 100) < 0.03


def test_a_wave_reaches_exactly_the_numbers_below_its_percent() -> None:
    fleet = [service(uid=f"uid-{number}") for number in range(300)]
    assert any(bucket(each) == 25 for each in fleet)
    for each in fleet:
        assert reached(each, Roll(), Cursor(percent=25)) == (bucket(each) < 25)


def test_a_hold_on_what_closed_the_hole_counts() -> None:
    breaking = {"security": "CVE-2026-1234", "breakHolds": True}
    rolls = (runtime(42, "logs-2", roll=breaking, done=DONE), runtime(43, "logs-1", done=DONE))
    known = runtimes(*PARTS, runtime(41, "logs-1", done=DONE), *rolls)
    held = [runtime_of(service(hold={"runtime": each, "until": "2026-12-31"}), known, NOW).number for each in (41, 42)]
    assert held == [43, 42]


def test_what_is_older_than_the_current_one_is_not_rolled_out() -> None:
    found = runtimes(*PARTS, runtime(41, "logs-1", roll={}), runtime(42, "logs-2", done=DONE))
    assert (found.current, found.next) == (42, 0)


def test_who_has_it_keeps_it_in_every_later_wave() -> None:
    fleet = [service(uid=f"uid-{number}") for number in range(300)]
    have: set[int] = set()
    for percent in range(1, 101):
        now = {index for index, each in enumerate(fleet) if runtime_of(each, rolling(percent), NOW).number == 42}
        assert have <= now
        have = now
    assert len(have) == len(fleet)


def test_a_folder_knows_no_uid_and_goes_by_the_name() -> None:
    assert bucket(service("a")) == bucket(service("a"))
    assert len({bucket(service(name)) for name in "abcdefgh"}) > 1


ROLL = Roll(waves=[50, 100], zones=["a", "b"], tiers=[Tier.PREEMPTIBLE])


def test_waves_go_zone_by_zone_and_tier_by_tier_and_what_is_not_named_comes_last() -> None:
    words = [each.words(ROLL) for each in waves(ROLL)]
    assert words[:4] == [
        "50% of preemptible in zone a",
        "100% of preemptible in zone a",
        "50% of zone a",
        "100% of zone a",
    ]
    assert words[-2:] == ["50% of the others", "100% of the others"]
    assert len(words) == 12


def test_a_cursor_walks_over_every_wave_once() -> None:
    cursor: Cursor | None = None
    seen: list[Wave] = []
    while (wave := following(ROLL, cursor)) is not None:
        cursor = Cursor(zone=wave.zone, tier=wave.tier, percent=wave.percent)
        seen.append(wave)
        assert counted(ROLL, cursor) == (len(seen), 12)
    assert tuple(seen) == waves(ROLL)


def test_percents_may_change_on_the_way() -> None:
    cursor = Cursor(percent=25)
    following_wave = following(Roll(waves=[10, 30, 100]), cursor)
    assert following_wave is not None
    assert following_wave.percent == 30


def test_whom_a_zone_and_a_tier_reach() -> None:
    cursor = Cursor(zone="b", tier="preemptible", percent=100)
    in_zone = {"spec": {"nodeSelector": {ZONE: "a"}}}
    assert reached(service(template=in_zone), ROLL, cursor)
    in_zone["spec"]["nodeSelector"][ZONE] = "b"
    assert reached(service(template=in_zone, tier="preemptible"), ROLL, cursor)
    assert not reached(service(template=in_zone), ROLL, cursor)
    assert not reached(service(tier="preemptible"), ROLL, cursor)


def test_work_that_ends_by_itself_keeps_what_it_began_with(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = service()
    monkeypatch.setattr(type(owner), "GOAL", SUCCEEDED)
    begun = msgspec.structs.replace(
        owner, status=msgspec.structs.replace(owner.status, runtime=41, progress=Progress())
    )
    assert runtime_of(owner, runtimes(*TWO), NOW).number == 42
    assert runtime_of(begun, runtimes(*TWO), NOW).number == 41
    (problem,) = runtime_of(begun, runtimes(*PARTS, runtime(42, "logs-2", done=DONE)), NOW).problems
    assert problem.what == "it began with runtime 41, which has been removed since"

"""Cron lines: what they say, what is wrong with them, and that they come due when Kubernetes' controller says so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pincompute.objects.occurrences import following, nearest_zone, next_times, zone_of
from pincompute.objects.schedule import WORDS, NotASchedule, parse

HOURS = 60


class Row(NamedTuple):
    zone: str
    begin: int
    line: str
    due: list[int]
    """For each hour, the next time."""


def rows() -> Iterator[Row]:
    """What the real one answered; the file says how it was asked."""
    for text in Path(__file__).with_name("times").joinpath("cron.txt").read_text().splitlines():
        if text.startswith("#"):
            continue
        zone, begin, line, changes = text.split(" | ")
        told = {int(hour): int(minutes) for hour, minutes in (each.split(":") for each in changes.split())}
        due: list[int] = []
        for hour in range(HOURS):
            due.append(int(begin) + told[hour] * 60 if hour in told else due[-1])
        yield Row(zone, int(begin), line, due)


@pytest.mark.parametrize("row", list(rows()), ids=lambda row: f"{row.zone} {row.begin} {row.line}")
def test_it_comes_due_when_kubernetes_says_so(row: Row) -> None:
    schedule, zone = parse(row.line), zone_of(row.zone)
    for hour, due in enumerate(row.due):
        found = following(schedule, zone, datetime.fromtimestamp(row.begin + hour * 3600, UTC))
        assert found == datetime.fromtimestamp(due, UTC), hour


def times(line: str, zone: str, after: str, count: int = 3) -> list[str]:
    there = zone_of(zone)
    found = next_times(parse(line), there, datetime.fromisoformat(after), count)
    return [each.astimezone(there).isoformat() for each in found]


def test_a_time_that_a_day_does_not_have_is_left_out() -> None:
    assert times("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00+01:00", 2) == [
        "2026-03-30T02:30:00+02:00",
        "2026-03-31T02:30:00+02:00",
    ]


def test_a_time_that_a_day_has_twice_comes_due_twice() -> None:
    assert times("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00+02:00") == [
        "2026-10-25T02:30:00+02:00",
        "2026-10-25T02:30:00+01:00",
        "2026-10-26T02:30:00+01:00",
    ]


def test_of_days_and_weekdays_either_will_do_where_both_are_restricted() -> None:
    after = "2026-01-31T12:00:00Z"
    assert [each[:10] for each in times("0 0 15 * mon", "UTC", after)] == ["2026-02-02", "2026-02-09", "2026-02-15"]
    assert [each[:10] for each in times("0 0 */10 * mon", "UTC", after)] == ["2026-02-01", "2026-02-02", "2026-02-09"]
    assert [each[:10] for each in times("0 0 15 * ?", "UTC", after)] == ["2026-02-15", "2026-03-15", "2026-04-15"]


def test_a_time_is_never_its_own_next_one() -> None:
    assert times("0 12 * * *", "UTC", "2026-01-31T12:00:00+00:00", 1) == ["2026-02-01T12:00:00+00:00"]
    assert times("0 12 * * *", "UTC", "2026-01-31T11:59:59.999+00:00", 1) == ["2026-01-31T12:00:00+00:00"]


def test_a_leap_day_comes_due_every_four_years_and_the_search_for_it_ends() -> None:
    assert [each[:10] for each in times("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", 2)] == ["2028-02-29", "2032-02-29"]
    assert times("0 0 29 2 *", "UTC", "2097-01-01T00:00:00Z", 5) == []


def test_a_day_that_a_zone_left_out_does_not_stop_the_search() -> None:
    """robfig/cron never comes back from here."""
    found = times("4 0 * 12 sat", "Pacific/Apia", "2011-12-29T00:00:00-10:00", 1)
    assert found == ["2011-12-31T00:04:00+14:00"]


@pytest.mark.parametrize(("name", "line"), list(WORDS.items()))
def test_names_stand_for_lines(name: str, line: str) -> None:
    assert parse(name) == parse(line)


@pytest.mark.parametrize(
    ("line", "words", "instead"),
    [
        ("", "0 fields and not five", ""),
        ("* * * *", "4 fields and not five", ""),
        ("0 0 3 * * *", "6 fields and not five", "0 3 * * *"),
        ("0 3 * * * 2026", "6 fields and not five", "0 3 * * *"),
        ("0 0 3 ? * MON *", "7 fields and not five", "0 3 ? * MON"),
        ("60 * * * *", "minutes are 0 to 59", "0 * * * *"),
        ("75 * * * *", "minutes are 0 to 59", "59 * * * *"),
        ("0 24 * * *", "hours are 0 to 23", "0 0 * * *"),
        ("0 3 0 * *", "days are 1 to 31", "0 3 1 * *"),
        ("0 3 * 13 *", "months are 1 to 12", "0 3 * 12 *"),
        ("0 3 * * 7", "weekdays are 0 to 6", "0 3 * * 0"),
        ("0 3 * * monday", "there is no weekday 'monday'", "0 3 * * mon"),
        ("0 3 * * noday", "there is no weekday 'noday'", ""),
        ("0 22-6 * * *", "22 comes after 6", "0 22-23,0-6 * * *"),
        ("0 3 * * fri-mon", "fri comes after mon", "0 3 * * fri-6,0-mon"),
        ("*/0 * * * *", "'0' is no step", "* * * * *"),
        ("*/x * * * *", "'x' is no step", "* * * * *"),
        ("5/x * * * *", "'x' is no step", ""),
        ("*-5 * * * *", "'*-5' is no range", "* * * * *"),
        ("1-2-3 * * * *", "no number and no range", ""),
        ("1,,2 * * * *", "nothing stands beside a comma", ""),
        ("+5 * * * *", "there is no minute '+5'", ""),
        ("٣ * * * *", "there is no minute '٣'", ""),
        ("0 3 L * *", "there is no day 'L'", ""),
        ("61 25 * * *", "minute is '61': minutes are 0 to 59; hour is '25': hours are 0 to 23", "59 23 * * *"),
        ("0 0 31 2 *", "no month that it names has a day 31, so it would never run", "0 0 28 2 *"),
        ("0 0 30 feb ?", "no month that it names has a day 30", "0 0 28 feb ?"),
        ("0 0 31 4,6,9,11 *", "no month that it names has a day 31", "0 0 30 4,6,9,11 *"),
        ("@daily 5", "'@daily' stands alone", "@daily"),
        ("@Daily", "'@Daily' stands alone and in lower case", "@daily"),
        ("@daily 0 3 * * *", "'@daily' stands alone", "@daily"),
        ("@often", "there is no '@often', only @yearly", ""),
        ("@reboot 0 3 * * *", "does not belong before five fields", "0 3 * * *"),
        ("@every 5m", "counts from when the job was made", "*/5 * * * *"),
        ("@every 2h", "counts from when the job was made", "0 */2 * * *"),
        ("@every 90s", "counts from when the job was made", ""),
        ("TZ=Europe/Berlin 0 3 * * *", "timeZone says it", "0 3 * * *"),
        ("CRON_TZ=UTC @daily", "timeZone says it", "@daily"),
    ],
)
def test_what_is_wrong_is_said_with_the_nearest_line_that_is_right(line: str, words: str, instead: str) -> None:
    with pytest.raises(NotASchedule, match=re.escape(words)) as told:
        parse(line)
    assert told.value.instead == instead
    if instead:
        parse(instead)


@pytest.mark.parametrize(
    "line", ["0 0 31 2 mon", "0 0 29 2 *", "0 0 31 1-2 *", "*/90 * * * *", "0 3 ? * ?", "5/20 * * * *"]
)
def test_these_come_due(line: str) -> None:
    assert times(line, "UTC", "2026-01-31T12:00:00Z", 2)


@given(st.text(alphabet="0123456789*/-,?@LW# montuedailyhr\t", max_size=40) | st.text(max_size=20))
def test_any_text_is_a_schedule_or_refused_with_a_line_that_is_one(line: str) -> None:
    try:
        parse(line)
    except NotASchedule as error:
        if error.instead:
            parse(error.instead)


@given(
    st.sampled_from(["* * * * *", "17 */3 * * *", "30 2 * * sun", "0 0 1 */2 *", "@weekly"]),
    st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo"]),
    st.datetimes(datetime(2015, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_times_only_ever_move_on(line: str, zone: str, after: datetime) -> None:
    found = next_times(parse(line), ZoneInfo(zone), after, 5)
    assert len(found) == 5
    assert sorted({*found}) == list(found)
    assert after < found[0] < after + timedelta(days=80)
    assert all(each.second == 0 for each in found)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("Europe/Berlim", "Europe/Berlin"),
        ("europe/berlin", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("New York", "America/New_York"),
        ("Asia/Calcuta", "Asia/Calcutta"),
        ("Europe", ""),
        ("Local", ""),
        ("localtime", ""),
        ("../etc/passwd", ""),
        ("zone.tab", ""),
        ("", ""),
        ("\0", ""),
    ],
)
def test_what_is_no_time_zone_is_refused_with_the_nearest_one(name: str, near: str) -> None:
    with pytest.raises(ValueError, match="there is no time zone"):
        zone_of(name)
    assert nearest_zone(name) == near

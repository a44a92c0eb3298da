"""Cron schedules: parsing, suggestions, and the same occurrences as Kubernetes' controller."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from pincompute.objects.cron_schedule import NAMED_SCHEDULES, InvalidSchedule, parse_schedule
from pincompute.objects.schedule_times import load_time_zone, nearest_time_zone, next_time, next_times

HOURS_PER_ROW = 60


class Row(NamedTuple):
    zone: str
    begin: int
    line: str
    due: list[int]
    """Next time, for each hour."""


def rows() -> Iterator[Row]:
    """Recorded results of Kubernetes' library. The file describes how they were made."""
    for text in Path(__file__).with_name("times").joinpath("cron.txt").read_text().splitlines():
        if text.startswith("#"):
            continue
        zone, begin, line, changes = text.split(" | ")
        changes_by_hour = {int(hour): int(minutes) for hour, minutes in (each.split(":") for each in changes.split())}
        due: list[int] = []
        for hour in range(HOURS_PER_ROW):
            due.append(int(begin) + changes_by_hour[hour] * 60 if hour in changes_by_hour else due[-1])
        yield Row(zone, int(begin), line, due)


@pytest.mark.parametrize("row", list(rows()), ids=lambda row: f"{row.zone} {row.begin} {row.line}")
def test_matches_recorded_times_of_kubernetes(row: Row) -> None:
    schedule, zone = parse_schedule(row.line), load_time_zone(row.zone)
    for hour, due in enumerate(row.due):
        found = next_time(schedule, zone, datetime.fromtimestamp(row.begin + hour * 3600, UTC))
        assert found == datetime.fromtimestamp(due, UTC), hour


def next_local_times(line: str, zone: str, after: str, count: int = 3) -> list[str]:
    time_zone = load_time_zone(zone)
    found = next_times(parse_schedule(line), time_zone, datetime.fromisoformat(after), count)
    return [each.astimezone(time_zone).isoformat() for each in found]


def test_skips_time_that_does_not_exist() -> None:
    assert next_local_times("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00+01:00", 2) == [
        "2026-03-30T02:30:00+02:00",
        "2026-03-31T02:30:00+02:00",
    ]


def test_repeats_time_that_occurs_twice() -> None:
    assert next_local_times("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00+02:00") == [
        "2026-10-25T02:30:00+02:00",
        "2026-10-25T02:30:00+01:00",
        "2026-10-26T02:30:00+01:00",
    ]


def test_matches_day_or_weekday_if_both_restricted() -> None:
    after = "2026-01-31T12:00:00Z"
    assert [each[:10] for each in next_local_times("0 0 15 * mon", "UTC", after)] == [
        "2026-02-02",
        "2026-02-09",
        "2026-02-15",
    ]
    assert [each[:10] for each in next_local_times("0 0 */10 * mon", "UTC", after)] == [
        "2026-02-01",
        "2026-02-02",
        "2026-02-09",
    ]
    assert [each[:10] for each in next_local_times("0 0 15 * ?", "UTC", after)] == [
        "2026-02-15",
        "2026-03-15",
        "2026-04-15",
    ]


def test_next_time_is_after_given_time() -> None:
    assert next_local_times("0 12 * * *", "UTC", "2026-01-31T12:00:00+00:00", 1) == ["2026-02-01T12:00:00+00:00"]
    assert next_local_times("0 12 * * *", "UTC", "2026-01-31T11:59:59.999+00:00", 1) == ["2026-01-31T12:00:00+00:00"]


def test_leap_day_and_end_of_search() -> None:
    assert [each[:10] for each in next_local_times("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", 2)] == [
        "2028-02-29",
        "2032-02-29",
    ]
    assert next_local_times("0 0 29 2 *", "UTC", "2097-01-01T00:00:00Z", 5) == []


def test_search_passes_day_skipped_by_zone() -> None:
    """robfig/cron loops forever here."""
    found = next_local_times("4 0 * 12 sat", "Pacific/Apia", "2011-12-29T00:00:00-10:00", 1)
    assert found == ["2011-12-31T00:04:00+14:00"]


@pytest.mark.parametrize(("name", "line"), list(NAMED_SCHEDULES.items()))
def test_named_schedules(name: str, line: str) -> None:
    assert parse_schedule(name) == parse_schedule(line)


@pytest.mark.parametrize(
    ("line", "message", "suggestion"),
    [
        ("", "0 fields instead of five", ""),
        ("* * * *", "4 fields instead of five", ""),
        ("0 0 3 * * *", "6 fields instead of five", "0 3 * * *"),
        ("0 3 * * * 2026", "6 fields instead of five", "0 3 * * *"),
        ("0 0 3 ? * MON *", "7 fields instead of five", "0 3 ? * MON"),
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
        ("*/0 * * * *", "'0' is not a step", "* * * * *"),
        ("*/x * * * *", "'x' is not a step", "* * * * *"),
        ("5/x * * * *", "'x' is not a step", ""),
        ("*-5 * * * *", "'*-5' is not a range", "* * * * *"),
        ("1-2-3 * * * *", "not a number or range", ""),
        ("1,,2 * * * *", "there is nothing beside a comma", ""),
        ("+5 * * * *", "there is no minute '+5'", ""),
        ("٣ * * * *", "there is no minute '٣'", ""),
        ("0 3 L * *", "there is no day 'L'", ""),
        ("61 25 * * *", "minute is '61': minutes are 0 to 59; hour is '25': hours are 0 to 23", "59 23 * * *"),
        ("0 0 31 2 *", "none of its months has a day 31, so it would never run", "0 0 28 2 *"),
        ("0 0 30 feb ?", "none of its months has a day 30", "0 0 28 feb ?"),
        ("0 0 31 4,6,9,11 *", "none of its months has a day 31", "0 0 30 4,6,9,11 *"),
        ("@daily 5", "'@daily' must be in lower case and without further fields", "@daily"),
        ("@Daily", "'@Daily' must be in lower case", "@daily"),
        ("@daily 0 3 * * *", "'@daily' must be in lower case and without further fields", "@daily"),
        ("@often", "unknown schedule '@often', known are @yearly", ""),
        ("@reboot 0 3 * * *", "cannot be combined with five fields", "0 3 * * *"),
        ("@every 5m", "it counts from the creation of the job", "*/5 * * * *"),
        ("@every 2h", "it counts from the creation of the job", "0 */2 * * *"),
        ("@every 90s", "it counts from the creation of the job", ""),
        ("TZ=Europe/Berlin 0 3 * * *", "set timeZone instead", "0 3 * * *"),
        ("CRON_TZ=UTC @daily", "set timeZone instead", "@daily"),
    ],
)
def test_rejects_invalid_schedule_with_suggestion(line: str, message: str, suggestion: str) -> None:
    with pytest.raises(InvalidSchedule, match=re.escape(message)) as error:
        parse_schedule(line)
    assert error.value.suggestion == suggestion
    if suggestion:
        parse_schedule(suggestion)


@pytest.mark.parametrize(
    "line", ["0 0 31 2 mon", "0 0 29 2 *", "0 0 31 1-2 *", "*/90 * * * *", "0 3 ? * ?", "5/20 * * * *"]
)
def test_valid_schedules_come_due(line: str) -> None:
    assert next_local_times(line, "UTC", "2026-01-31T12:00:00Z", 2)


@given(st.text(alphabet="0123456789*/-,?@LW# montuedailyhr\t", max_size=40) | st.text(max_size=20))
def test_suggestion_is_always_valid(line: str) -> None:
    try:
        parse_schedule(line)
    except InvalidSchedule as error:
        if error.suggestion:
            parse_schedule(error.suggestion)


@given(
    st.sampled_from(["* * * * *", "17 */3 * * *", "30 2 * * sun", "0 0 1 */2 *", "@weekly"]),
    st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo"]),
    st.datetimes(datetime(2015, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_times_increase(line: str, zone: str, after: datetime) -> None:
    found = next_times(parse_schedule(line), ZoneInfo(zone), after, 5)
    assert len(found) == 5
    assert sorted({*found}) == list(found)
    assert after < found[0] < after + timedelta(days=80)
    assert all(each.second == 0 for each in found)


@pytest.mark.parametrize(
    ("name", "suggestion"),
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
def test_rejects_unknown_time_zone_with_suggestion(name: str, suggestion: str) -> None:
    with pytest.raises(ValueError, match="unknown time zone"):
        load_time_zone(name)
    assert nearest_time_zone(name) == suggestion

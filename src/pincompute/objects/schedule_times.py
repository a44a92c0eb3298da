"""Occurrences of a cron schedule, with the behaviour of Kubernetes' controller on days of clock changes.

The algorithm repeats `Next` of github.com/robfig/cron step by step. Hours are added to the instant, not to the local
time, so that a local time that does not exist is skipped and one that occurs twice runs twice. Quirks are kept on
purpose: the times shown must be those at which Kubernetes starts the job.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

from pincompute.objects.cron_schedule import CronSchedule, parse_schedule

MAX_YEARS_AHEAD = 5
"""How far ahead to search for an occurrence."""
_COMPARED_TIMES = 200
"""Occurrences among which the shortest interval is searched: more than a day of `*/10 * * * *`."""
_NOT_TIME_ZONES = ("local", "posix", "right/")
"""Files in the time zone directories of some systems that are not time zones."""
_MIN_SIMILARITY = 0.75
_MINUTE = 60
_HOUR = 3600


def load_time_zone(name: str) -> ZoneInfo:
    """Load a time zone. ValueError if it does not exist."""
    if not name.lower().startswith(_NOT_TIME_ZONES):
        try:
            return ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            # The name is a path, a directory, or unknown.
            pass
    raise ValueError(f"unknown time zone '{name}'")


def nearest_time_zone(name: str) -> str:
    """Most similar time zone name; empty if none is similar."""
    known = {each.lower(): each for each in sorted(available_timezones()) if not each.startswith(_NOT_TIME_ZONES)}
    wanted = name.lower().replace(" ", "_")
    cities = {each.rpartition("/")[2]: whole for each, whole in known.items()}
    matches = [
        each for names in (known, cities) for each in get_close_matches(wanted, names, n=1, cutoff=_MIN_SIMILARITY)
    ]
    return (known | cities)[matches[0]] if matches else ""


def next_time(schedule: CronSchedule, zone: ZoneInfo, after: datetime) -> datetime | None:
    """First occurrence after a moment, in UTC; None if there is none within five years."""
    search = _Search(schedule, zone, int(after.timestamp()) + 1)
    last_year = search.local_time.year + MAX_YEARS_AHEAD
    while search.local_time.year <= last_year:
        # Each step advances its field to a match. One that wraps around changes larger fields: start over.
        wrapped = (
            search.advance_month()
            or search.advance_day()
            or search.advance_hour()
            or search.advance_minute()
            or search.advance_second()
        )
        if not wrapped:
            return datetime.fromtimestamp(search.at, UTC)
    return None


@lru_cache(maxsize=1024)
def shortest_interval_s(schedule: str) -> float | None:
    """Shortest time between two occurrences of a valid schedule; None if there are fewer than two."""
    times = next_times(parse_schedule(schedule), ZoneInfo("UTC"), datetime(2026, 1, 1, tzinfo=UTC), _COMPARED_TIMES)
    return min(((later - time).total_seconds() for time, later in pairwise(times)), default=None)


def next_times(schedule: CronSchedule, zone: ZoneInfo, after: datetime, count: int) -> tuple[datetime, ...]:
    """The next `count` occurrences in UTC; fewer if there are no more within five years."""
    found: list[datetime] = []
    while len(found) < count:
        moment = next_time(schedule, zone, found[-1] if found else after)
        if moment is None:
            break
        found.append(moment)
    return tuple(found)


class _Search:
    """Search from a moment to the next match."""

    def __init__(self, schedule: CronSchedule, zone: ZoneInfo, at: int) -> None:
        self.at = at
        """Seconds since the epoch."""
        self._schedule = schedule
        self._zone = zone
        self._has_advanced = False
        """Smaller fields have been reset to their start, which happens once, when the first field advances."""

    @property
    def local_time(self) -> datetime:
        return datetime.fromtimestamp(self.at, self._zone)

    @property
    def _time_of_day(self) -> timedelta:
        """Local time of day."""
        return timedelta(hours=self.local_time.hour, minutes=self.local_time.minute, seconds=self.local_time.second)

    def advance_month(self) -> bool:
        while self.local_time.month not in self._schedule.months:
            self._reset_to(self._instant_of(self.local_time.year, self.local_time.month, 1))
            self.at = self._instant_of(
                self.local_time.year, self.local_time.month + 1, self.local_time.day, self._time_of_day
            )
            if self.local_time.month == 1:
                return True
        return False

    def advance_day(self) -> bool:
        while not self._day_matches():
            self._reset_to(self._instant_of(self.local_time.year, self.local_time.month, self.local_time.day))
            before = self.at
            self.at = self._instant_of(
                self.local_time.year, self.local_time.month, self.local_time.day + 1, self._time_of_day
            )
            hour = self.local_time.hour
            if hour:
                # The day has no midnight because of a clock change.
                self.at += (24 - hour if hour > 12 else -hour) * _HOUR
            if self.at <= before:
                # The zone skipped a day, as Samoa did in 2011. robfig's algorithm would loop forever here.
                self.at = before + 24 * _HOUR
            if self.local_time.day == 1:
                return True
        return False

    def advance_hour(self) -> bool:
        while self.local_time.hour not in self._schedule.hours:
            wall = self.local_time
            self._reset_to(self._instant_of(wall.year, wall.month, wall.day, timedelta(hours=wall.hour)))
            self.at += _HOUR
            if self.local_time.hour == 0:
                return True
        return False

    def advance_minute(self) -> bool:
        while self.local_time.minute not in self._schedule.minutes:
            self._reset_to(self.at - self.at % _MINUTE)
            self.at += _MINUTE
            if self.local_time.minute == 0:
                return True
        return False

    def advance_second(self) -> bool:
        """Occurrences are at whole minutes."""
        seconds = self.at % _MINUTE
        if seconds == 0:
            return False
        self._has_advanced = True
        self.at += _MINUTE - seconds
        return True

    def _reset_to(self, at: int) -> None:
        if not self._has_advanced:
            self._has_advanced = True
            self.at = at

    def _day_matches(self) -> bool:
        wall = self.local_time
        day = wall.day in self._schedule.days
        weekday = wall.isoweekday() % 7 in self._schedule.weekdays
        return day or weekday if self._schedule.day_or_weekday else day and weekday

    def _instant_of(self, year: int, month: int, day: int, clock: timedelta = timedelta()) -> int:
        """Instant of a local time, resolved like Go's `time.Date` if the local time is ambiguous or does not exist."""
        first = datetime(year + (month - 1) // 12, (month - 1) % 12 + 1, 1, tzinfo=UTC)
        as_utc = int((first + timedelta(days=day - 1) + clock).timestamp())
        offset = self._offset(as_utc)
        return as_utc - (self._offset(as_utc - offset) if offset else 0)

    def _offset(self, at: int) -> int:
        offset = datetime.fromtimestamp(at, self._zone).utcoffset()
        assert offset is not None
        return int(offset.total_seconds())

"""When a schedule comes due: the rule of Kubernetes' own controller, its days of changing clocks included.

That controller walks as `Next` of github.com/robfig/cron does, and so does this, step by step: hours are added to the
moment and not to the clock on the wall, so a time that a day does not have is left out, and one that it has twice comes
due twice. Every quirk is kept on purpose: what is told here is what will happen.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from zoneinfo import ZoneInfo, available_timezones

from pincompute.objects.schedule import Schedule

YEARS = 5
"""How far is looked ahead."""
_NOT_ONE = ("local", "posix", "right/")
"""Some machines have files of such names among their time zones."""
_ALIKE = 0.75
_MINUTE = 60
_HOUR = 3600


def zone_of(name: str) -> ZoneInfo:
    """ValueError with words, where there is no such time zone."""
    if not name.lower().startswith(_NOT_ONE):
        try:
            return ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            # A path, a folder, or nothing at all.
            pass
    raise ValueError(f"there is no time zone '{name}'")


def nearest_zone(name: str) -> str:
    """The time zone that was probably meant; empty where none is like it."""
    known = {each.lower(): each for each in sorted(available_timezones()) if not each.startswith(_NOT_ONE)}
    said = name.lower().replace(" ", "_")
    cities = {each.rpartition("/")[2]: whole for each, whole in known.items()}
    near = [each for names in (known, cities) for each in get_close_matches(said, names, n=1, cutoff=_ALIKE)]
    return (known | cities)[near[0]] if near else ""


def following(schedule: Schedule, zone: ZoneInfo, after: datetime) -> datetime | None:
    """The first time after a moment, in UTC; none where there is none for years."""
    walk = _Walk(schedule, zone, int(after.timestamp()) + 1)
    last = walk.wall.year + YEARS
    while walk.wall.year <= last:
        # Each moves on to what matches; one that moves past the end of its field has all of them asked again.
        if not (walk.past_month() or walk.past_day() or walk.past_hour() or walk.past_minute() or walk.past_second()):
            return datetime.fromtimestamp(walk.at, UTC)
    return None


def next_times(schedule: Schedule, zone: ZoneInfo, after: datetime, count: int) -> tuple[datetime, ...]:
    """The first so many, in UTC; fewer where there are no more for years."""
    found: list[datetime] = []
    while len(found) < count:
        moment = following(schedule, zone, found[-1] if found else after)
        if moment is None:
            break
        found.append(moment)
    return tuple(found)


class _Walk:
    """From a moment to the next that matches."""

    def __init__(self, schedule: Schedule, zone: ZoneInfo, at: int) -> None:
        self.at = at
        """Seconds since 1970."""
        self._schedule = schedule
        self._zone = zone
        self._moved = False
        """What is smaller than the field that moved first is at its beginning."""

    @property
    def wall(self) -> datetime:
        return datetime.fromtimestamp(self.at, self._zone)

    @property
    def _clock(self) -> timedelta:
        """The time of day on the wall."""
        return timedelta(hours=self.wall.hour, minutes=self.wall.minute, seconds=self.wall.second)

    def past_month(self) -> bool:
        while self.wall.month not in self._schedule.months:
            self._begin_at(self._wall_at(self.wall.year, self.wall.month, 1))
            self.at = self._wall_at(self.wall.year, self.wall.month + 1, self.wall.day, self._clock)
            if self.wall.month == 1:
                return True
        return False

    def past_day(self) -> bool:
        while not self._day_matches():
            self._begin_at(self._wall_at(self.wall.year, self.wall.month, self.wall.day))
            before = self.at
            self.at = self._wall_at(self.wall.year, self.wall.month, self.wall.day + 1, self._clock)
            hour = self.wall.hour
            if hour:
                # A day without a midnight.
                self.at += (24 - hour if hour > 12 else -hour) * _HOUR
            if self.at <= before:
                # A day that a zone left out, as Samoa did in 2011: robfig's walk would never end here.
                self.at = before + 24 * _HOUR
            if self.wall.day == 1:
                return True
        return False

    def past_hour(self) -> bool:
        while self.wall.hour not in self._schedule.hours:
            wall = self.wall
            self._begin_at(self._wall_at(wall.year, wall.month, wall.day, timedelta(hours=wall.hour)))
            self.at += _HOUR
            if self.wall.hour == 0:
                return True
        return False

    def past_minute(self) -> bool:
        while self.wall.minute not in self._schedule.minutes:
            self._begin_at(self.at - self.at % _MINUTE)
            self.at += _MINUTE
            if self.wall.minute == 0:
                return True
        return False

    def past_second(self) -> bool:
        """Times come due at the beginning of a minute."""
        over = self.at % _MINUTE
        if over == 0:
            return False
        self._moved = True
        self.at += _MINUTE - over
        return True

    def _begin_at(self, at: int) -> None:
        if not self._moved:
            self._moved = True
            self.at = at

    def _day_matches(self) -> bool:
        wall = self.wall
        day = wall.day in self._schedule.days
        weekday = wall.isoweekday() % 7 in self._schedule.weekdays
        return day or weekday if self._schedule.either else day and weekday

    def _wall_at(self, year: int, month: int, day: int, clock: timedelta = timedelta()) -> int:
        """The moment of a time on the wall, as Go's `time.Date` chooses where there is none or two."""
        first = datetime(year + (month - 1) // 12, (month - 1) % 12 + 1, 1, tzinfo=UTC)
        plain = int((first + timedelta(days=day - 1) + clock).timestamp())
        offset = self._offset(plain)
        return plain - (self._offset(plain - offset) if offset else 0)

    def _offset(self, at: int) -> int:
        offset = datetime.fromtimestamp(at, self._zone).utcoffset()
        assert offset is not None
        return int(offset.total_seconds())

"""Cron schedules, parsed as Kubernetes does."""

from __future__ import annotations

import re
from typing import NamedTuple


class InvalidSchedule(ValueError):  # noqa: N818  (the name states the problem)
    """The schedule is invalid. `suggestion` is the nearest valid one, if there is any."""

    def __init__(self, what: str, suggestion: str = "") -> None:
        super().__init__(what)
        self.suggestion = suggestion


class CronSchedule(NamedTuple):
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    """0 is Sunday."""
    day_or_weekday: bool
    """Day and weekday are both restricted, and a date that matches either is due."""


class _Field(NamedTuple):
    word: str
    minimum: int
    maximum: int
    names: tuple[str, ...] = ()
    """Names of the numbers, from the lowest."""


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day", 1, 31),
    _Field("month", 1, 12, ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")),
    _Field("weekday", 0, 6, ("sun", "mon", "tue", "wed", "thu", "fri", "sat")),
)
NAMED_SCHEDULES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
"""Schedules with a name."""
_MAX_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
"""Maximum number of days of each month."""
_RANGE = re.compile(r"(?P<begin>[^/-]+)(-(?P<end>[^/-]+))?(/(?P<step>[^/-]+))?")
_EVERY = re.compile(r"@every ([0-9]+)([mh])")


def parse_schedule(line: str) -> CronSchedule:
    """Parse a schedule. InvalidSchedule if Kubernetes would reject it or if it would never come due."""
    words = line.split()
    if words and words[0].startswith("@"):
        words = _expanded(words)
    if len(words) != len(_FIELDS) or "TZ=" in words[0]:
        raise _field_count_error(words)
    parsed = [_ParsedField.of(field, word) for field, word in zip(_FIELDS, words, strict=True)]
    invalid = [each for each in parsed if each.error]
    if invalid:
        suggestion = " ".join(each.suggestion for each in parsed) if all(each.suggestion for each in invalid) else ""
        raise InvalidSchedule("; ".join(each.error for each in invalid), suggestion)
    minutes, hours, days, months, weekdays = parsed
    day_or_weekday = not days.is_star and not weekdays.is_star
    schedule = CronSchedule(minutes.values, hours.values, days.values, months.values, weekdays.values, day_or_weekday)
    if not _comes_due(schedule):
        last = max(_MAX_DAYS[month - 1] for month in schedule.months)
        what = f"none of its months has a day {schedule.days[0]}, so it would never run"
        raise InvalidSchedule(what, " ".join([*words[:2], str(min(last, 28 if last < 30 else 30)), *words[3:]]))
    return schedule


def _comes_due(schedule: CronSchedule) -> bool:
    return schedule.day_or_weekday or any(schedule.days[0] <= _MAX_DAYS[month - 1] for month in schedule.months)


def _expanded(words: list[str]) -> list[str]:
    """Resolve a named schedule into its five fields."""
    name, rest = words[0].lower(), words[1:]
    if words == [name] and name in NAMED_SCHEDULES:
        return NAMED_SCHEDULES[name].split()
    if name in NAMED_SCHEDULES:
        raise InvalidSchedule(f"'{words[0]}' must be in lower case and without further fields", name)
    if name == "@every":
        match = _EVERY.fullmatch(" ".join(words))
        suggestion = {"m": "*/{} * * * *", "h": "0 */{} * * *"}[match[2]].format(match[1]) if match else ""
        raise InvalidSchedule("@every is not supported: it counts from the creation of the job", suggestion)
    if len(rest) == len(_FIELDS):
        raise InvalidSchedule(f"'{words[0]}' cannot be combined with five fields", " ".join(rest))
    raise InvalidSchedule(f"unknown schedule '{words[0]}', known are {', '.join(NAMED_SCHEDULES)}")


def _field_count_error(words: list[str]) -> InvalidSchedule:
    if words and "TZ=" in words[0]:
        return InvalidSchedule(f"'{words[0]}' is not allowed here: set timeZone instead", " ".join(words[1:]))
    what = f"it has {len(words)} fields instead of five: minute, hour, day, month and weekday"
    # Other cron dialects have seconds in front or a year at the end.
    for fewer in (words[1:], words[:-1], words[1:-1]):
        if len(fewer) != len(_FIELDS):
            continue
        if not any(_ParsedField.of(*each).error for each in zip(_FIELDS, fewer, strict=True)):
            return InvalidSchedule(what, " ".join(fewer))
    return InvalidSchedule(what)


class _ParsedField(NamedTuple):
    """Numbers of one field, or its error."""

    values: tuple[int, ...] = ()
    is_star: bool = False
    """The field is unrestricted."""
    error: str = ""
    suggestion: str = ""
    """Corrected field, if one is known."""

    @classmethod
    def of(cls, field: _Field, text: str) -> _ParsedField:
        parts = [_parse_part(field, each) for each in text.split(",")]
        errors = [each.error for each in parts if each.error]
        if errors:
            is_fixable = all(each.suggestion for each in parts)
            suggestion = ",".join(each.suggestion for each in parts) if is_fixable else ""
            return cls(error=f"{field.word} is '{text}': {errors[0]}", suggestion=suggestion)
        values = sorted({value for each in parts for value in each.values})
        return cls(tuple(values), any(each.is_star for each in parts), suggestion=text)


def _parse_part(field: _Field, text: str) -> _ParsedField:
    """Parse one of the comma-separated ranges: `*`, `5`, `1-5`, `*/10`, `0-30/5`."""
    match = _RANGE.fullmatch(text)
    if match is None:
        return _ParsedField(error=f"'{text}' is not a number or range" if text else "there is nothing beside a comma")
    is_star = match["begin"] in {"*", "?"}
    if is_star and match["end"]:
        return _ParsedField(error=f"'{text}' is not a range", suggestion=match["begin"])
    step = _parse_step(match["step"] or "1")
    if step is None:
        return _ParsedField(error=f"'{match['step']}' is not a step", suggestion=match["begin"] if is_star else "")
    return _whole_range(field, step) if is_star else _parse_range(field, match, step)


def _whole_range(field: _Field, step: int) -> _ParsedField:
    """All values of a field. Kubernetes counts a star with a step as a restriction."""
    text = f"*/{step}" if step > 1 else "*"
    return _ParsedField(tuple(range(field.minimum, field.maximum + 1, step)), step == 1, suggestion=text)


def _parse_range(field: _Field, match: re.Match[str], step: int) -> _ParsedField:
    """A single number with a step extends to the maximum."""
    text, first, last = match[0], match["begin"], match["end"] or match["begin"]
    begin, end = _parse_number(field, first), _parse_number(field, last)
    for word, number in ((first, begin), (last, end)):
        if number is None:
            suggestion = _shortened_name(field, text, word)
            return _ParsedField(error=f"there is no {field.word} '{word}'", suggestion=suggestion)
        if not field.minimum <= number <= field.maximum:
            return _out_of_range(field, text, word, number)
    assert begin is not None
    assert end is not None
    if begin > end:
        suffix = f"/{step}" if step > 1 else ""
        suggestion = f"{first}-{field.maximum}{suffix},{field.minimum}-{last}{suffix}"
        return _ParsedField(error=f"{first} comes after {last}", suggestion=suggestion)
    stop = field.maximum if match["step"] and not match["end"] else end
    return _ParsedField(tuple(range(begin, stop + 1, step)), suggestion=text)


def _parse_step(text: str) -> int | None:
    return int(text) if re.fullmatch("0*[1-9][0-9]{0,3}", text, re.ASCII) else None


def _parse_number(field: _Field, word: str) -> int | None:
    if word.lower() in field.names:
        return field.minimum + field.names.index(word.lower())
    return int(word) if re.fullmatch("[0-9]{1,9}", word, re.ASCII) else None


def _shortened_name(field: _Field, text: str, word: str) -> str:
    """Suggest `mon` for `monday`."""
    short = word.lower()[:3]
    return text.replace(word, short) if short in field.names and word.isalpha() else ""


def _out_of_range(field: _Field, text: str, word: str, number: int) -> _ParsedField:
    """Suggest the nearest valid number.

    One past the maximum wraps around: hour 24 is hour 0, and weekday 7 is Sunday.
    """
    wraps = number == field.maximum + 1 and field.minimum == 0
    nearest = field.minimum if wraps or number < field.minimum else field.maximum
    error = f"{field.word}s are {field.minimum} to {field.maximum}"
    return _ParsedField(error=error, suggestion=str(nearest) if text == word else "")

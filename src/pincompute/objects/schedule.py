"""A cron line: which minutes, hours, days, months and weekdays it names, read as Kubernetes reads it."""

from __future__ import annotations

import re
from typing import NamedTuple


class NotASchedule(ValueError):  # noqa: N818  (it reads as what a line is)
    """What is wrong with a line, and the nearest line that is right, where there is one."""

    def __init__(self, what: str, instead: str = "") -> None:
        super().__init__(what)
        self.instead = instead


class Schedule(NamedTuple):
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    """0 is Sunday."""
    either: bool
    """Days and weekdays are both restricted, and a date that is one of either will do."""


class _Field(NamedTuple):
    word: str
    least: int
    most: int
    names: tuple[str, ...] = ()
    """Of its numbers, from the least."""


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day", 1, 31),
    _Field("month", 1, 12, ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")),
    _Field("weekday", 0, 6, ("sun", "mon", "tue", "wed", "thu", "fri", "sat")),
)
WORDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
"""Lines that have a name."""
_LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
"""Days that a month has at most."""
_RANGE = re.compile(r"(?P<begin>[^/-]+)(-(?P<end>[^/-]+))?(/(?P<step>[^/-]+))?")
_EVERY = re.compile(r"@every ([0-9]+)([mh])")


def parse(line: str) -> Schedule:
    """NotASchedule with words, where Kubernetes would refuse the line, or it would never come due."""
    words = line.split()
    if words and words[0].startswith("@"):
        words = _named(words)
    if len(words) != len(_FIELDS) or "TZ=" in words[0]:
        raise _miscounted(words)
    found = [_Values.of(field, word) for field, word in zip(_FIELDS, words, strict=True)]
    wrong = [each for each in found if each.wrong]
    if wrong:
        instead = " ".join(each.instead for each in found) if all(each.instead for each in wrong) else ""
        raise NotASchedule("; ".join(each.wrong for each in wrong), instead)
    minutes, hours, days, months, weekdays = found
    either = not days.star and not weekdays.star
    schedule = Schedule(minutes.values, hours.values, days.values, months.values, weekdays.values, either)
    if not _comes_due(schedule):
        last = max(_LONGEST[month - 1] for month in schedule.months)
        what = f"no month that it names has a day {schedule.days[0]}, so it would never run"
        raise NotASchedule(what, " ".join([*words[:2], str(min(last, 28 if last < 30 else 30)), *words[3:]]))
    return schedule


def _comes_due(schedule: Schedule) -> bool:
    return schedule.either or any(schedule.days[0] <= _LONGEST[month - 1] for month in schedule.months)


def _named(words: list[str]) -> list[str]:
    """The five fields that a name stands for."""
    name, rest = words[0].lower(), words[1:]
    if words == [name] and name in WORDS:
        return WORDS[name].split()
    if name in WORDS:
        raise NotASchedule(f"'{words[0]}' stands alone and in lower case, nothing else beside it", name)
    if name == "@every":
        every = _EVERY.fullmatch(" ".join(words))
        instead = {"m": "*/{} * * * *", "h": "0 */{} * * *"}[every[2]].format(every[1]) if every else ""
        raise NotASchedule("@every counts from when the job was made, and not by the clock", instead)
    if len(rest) == len(_FIELDS):
        raise NotASchedule(f"'{words[0]}' does not belong before five fields", " ".join(rest))
    raise NotASchedule(f"there is no '{words[0]}', only {', '.join(WORDS)}")


def _miscounted(words: list[str]) -> NotASchedule:
    if words and "TZ=" in words[0]:
        return NotASchedule(f"'{words[0]}' does not belong here, timeZone says it", " ".join(words[1:]))
    what = f"it has {len(words)} fields and not five: minute, hour, day, month and weekday"
    # Other programs begin with seconds, and end with a year.
    for fewer in (words[1:], words[:-1], words[1:-1]):
        if len(fewer) == len(_FIELDS) and not any(_Values.of(*each).wrong for each in zip(_FIELDS, fewer, strict=True)):
            return NotASchedule(what, " ".join(fewer))
    return NotASchedule(what)


class _Values(NamedTuple):
    """What one field names, or what is wrong with it."""

    values: tuple[int, ...] = ()
    star: bool = False
    """It names all, and does not restrict."""
    wrong: str = ""
    instead: str = ""
    """The field as it should be written, where that can be told."""

    @classmethod
    def of(cls, field: _Field, text: str) -> _Values:
        parts = [_part(field, each) for each in text.split(",")]
        wrong = [each for each in parts if each.wrong]
        mended = "" if any(not each.instead for each in parts) else ",".join(each.instead for each in parts)
        if wrong:
            return cls(wrong=f"{field.word} is '{text}': {wrong[0].wrong}", instead=mended)
        values = sorted({value for each in parts for value in each.values})
        return cls(tuple(values), any(each.star for each in parts), instead=text)


def _part(field: _Field, text: str) -> _Values:
    """One of the ranges between commas: `*`, `5`, `1-5`, `*/10`, `0-30/5`."""
    match = _RANGE.fullmatch(text)
    if match is None:
        return _Values(wrong=f"'{text}' is no number and no range" if text else "nothing stands beside a comma")
    star = match["begin"] in {"*", "?"}
    if star and match["end"]:
        return _Values(wrong=f"'{text}' is no range", instead=match["begin"])
    step = _step(match["step"] or "1")
    if step is None:
        return _Values(wrong=f"'{match['step']}' is no step", instead=match["begin"] if star else "")
    return _all(field, step) if star else _range(field, match, step)


def _all(field: _Field, step: int) -> _Values:
    """As Kubernetes has it, a star with a step restricts."""
    text = f"*/{step}" if step > 1 else "*"
    return _Values(tuple(range(field.least, field.most + 1, step)), step == 1, instead=text)


def _range(field: _Field, match: re.Match[str], step: int) -> _Values:
    """A single number with a step goes on to the last."""
    text, first, last = match[0], match["begin"], match["end"] or match["begin"]
    begin, end = _number(field, first), _number(field, last)
    for word, number in ((first, begin), (last, end)):
        if number is None:
            return _Values(wrong=f"there is no {field.word} '{word}'", instead=_meant(field, text, word))
        if not field.least <= number <= field.most:
            return _outside(field, text, word, number)
    assert begin is not None
    assert end is not None
    if begin > end:
        each = f"/{step}" if step > 1 else ""
        instead = f"{first}-{field.most}{each},{field.least}-{last}{each}"
        return _Values(wrong=f"{first} comes after {last}", instead=instead)
    stop = field.most if match["step"] and not match["end"] else end
    return _Values(tuple(range(begin, stop + 1, step)), instead=text)


def _step(text: str) -> int | None:
    return int(text) if re.fullmatch("0*[1-9][0-9]{0,3}", text, re.ASCII) else None


def _number(field: _Field, word: str) -> int | None:
    if word.lower() in field.names:
        return field.least + field.names.index(word.lower())
    return int(word) if re.fullmatch("[0-9]{1,9}", word, re.ASCII) else None


def _meant(field: _Field, text: str, word: str) -> str:
    """`monday` is mon."""
    short = word.lower()[:3]
    return text.replace(word, short) if short in field.names and word.isalpha() else ""


def _outside(field: _Field, text: str, word: str, number: int) -> _Values:
    """Past the last one the first comes round: hour 24 is hour 0, and weekday 7 is Sunday."""
    round_ = number == field.most + 1 and field.least == 0
    nearest = field.least if round_ or number < field.least else field.most
    wrong = f"{field.word}s are {field.least} to {field.most}"
    return _Values(wrong=wrong, instead=str(nearest) if text == word else "")

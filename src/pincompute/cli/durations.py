"""Formats ages and durations, and parses the time spans of options."""

from __future__ import annotations

import re
from datetime import datetime

import click

_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def format_age(since: str, now: datetime) -> str:
    """Return an empty string for an unknown time."""
    return format_duration(elapsed_s(since, now.isoformat())) if since else ""


def elapsed_s(since: str, until: str) -> float:
    return (datetime.fromisoformat(until) - datetime.fromisoformat(since)).total_seconds()


def format_duration(seconds: float) -> str:
    """Format in at most two units, such as 12s, 3m12s, 2h5m or 3d4h.

    A negative duration, which the clocks of two machines may give, is 0s.
    """
    rest = max(0, int(seconds))
    first = next((index for index, (_, size) in enumerate(_UNITS) if rest >= size), len(_UNITS) - 1)
    parts: list[str] = []
    for unit, size in _UNITS[first : first + 2]:
        count, rest = divmod(rest, size)
        if count or not parts:
            parts.append(f"{count}{unit}")
    return "".join(parts)


def format_estimate(seconds: int) -> str:
    """Format an estimated duration for a sentence, such as 1 h 20 min."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "min"), (rest, "s"))
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 s"


def parse_time_span(value: str) -> int:
    """Return seconds, such as 600 for 10m."""
    match = re.fullmatch(r"(\d{1,6})([smhd])", value)
    if match is None:
        raise click.BadParameter(f"'{value}' must be a time span such as 30s, 10m, 2h or 1d")
    return int(match[1]) * dict(_UNITS)[match[2]]

"""Timestamps in Kubernetes' format."""

from __future__ import annotations

from datetime import UTC, datetime


def format_time(moment: datetime) -> str:
    """Format a time in UTC with whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time_ns(time: str) -> int:
    """Nanoseconds since the epoch. For comparing times of log lines, which vary in precision and zone."""
    moment, _, rest = time.partition(".")
    digits = rest.rstrip("Z").partition("+")[0].partition("-")[0]
    zone = rest[len(digits) :] if rest else ""
    seconds = int(datetime.fromisoformat(moment + zone).timestamp())
    return seconds * 1_000_000_000 + int(digits[:9].ljust(9, "0") if digits else 0)

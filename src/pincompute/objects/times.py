"""Times as Kubernetes spells them."""

from __future__ import annotations

from datetime import UTC, datetime


def stamp(moment: datetime) -> str:
    """Whole seconds, UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def instant(time: str) -> int:
    """Nanoseconds since 1970, of a time as containers' lines bear it: to compare by, as its spelling may vary."""
    moment, _, rest = time.partition(".")
    digits = rest.rstrip("Z").partition("+")[0].partition("-")[0]
    zone = rest[len(digits) :] if rest else ""
    seconds = int(datetime.fromisoformat(moment + zone).timestamp())
    return seconds * 1_000_000_000 + int(digits[:9].ljust(9, "0") if digits else 0)

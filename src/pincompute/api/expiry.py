"""The field `expires` of workloads and projects: a span from their creation, or a date or time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Annotated

from msgspec import Meta

from pincompute.api.custom_resource import FieldError

MIN_SPAN = timedelta(hours=1)
MAX_SPAN = timedelta(days=365)
_SPAN = re.compile(r"([0-9]{1,4})([hd])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1)}
_DATE_LENGTH = len("2026-12-31")
# The years leave room for computing with any of these times.
_PATTERN = (
    r"^([0-9]{1,4}[hd]"
    r"|20[0-9]{2}-[01][0-9]-[0-3][0-9](T[0-2][0-9]:[0-5][0-9]:[0-5][0-9](Z|[-+][01][0-9]:[0-5][0-9]))?)?$"
)

Expires = Annotated[
    str,
    Meta(
        description="End of its life: a span from its creation of 1h to 365d, such as 12h or 7d; or a last day or a "
        "time, such as 2026-12-31 or 2026-12-31T18:00:00Z; never by default.",
        pattern=_PATTERN,
        max_length=32,
    ),
]


def parse_expiry(text: str, created: datetime) -> datetime:
    """The time that `expires` names; raises ValueError. A day ends at midnight UTC."""
    if span := _SPAN.fullmatch(text):
        return created + _checked_span(int(span[1]) * _UNITS[span[2]])
    if len(text) <= _DATE_LENGTH:
        return datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC) + timedelta(days=1)
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        msg = "the time zone is missing"
        raise ValueError(msg)
    return moment.astimezone(UTC)


def expiry_errors(text: str) -> Iterator[FieldError]:
    """A span out of bounds, and a day or time that does not exist. Whether it is past depends on the clock."""
    if not text:
        return
    try:
        parse_expiry(text, datetime(2026, 1, 1, tzinfo=UTC))
    except ValueError as error:
        yield FieldError(("expires",), f"expires is '{text}': {error}", next="expires: 7d, or expires: 2026-12-31")


def _checked_span(span: timedelta) -> timedelta:
    if not MIN_SPAN <= span <= MAX_SPAN:
        msg = "a span must be between 1h and 365d"
        raise ValueError(msg)
    return span

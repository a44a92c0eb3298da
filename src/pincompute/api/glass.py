"""Break-glass: what nobody has reviewed may run for a while, and says so."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from msgspec import Meta

from pincompute.api.wire import Strict


class Glass(Strict, frozen=True):
    """That it was let in unreviewed; the desk alone says so."""

    until: Annotated[
        str,
        Meta(
            description="The moment until which that was asked for, such as 2026-12-31T04:00:00Z.",
            pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$",
            max_length=20,
        ),
    ]
    by: Annotated[str, Meta(description="Who broke the glass, such as ann.", max_length=256)] = ""
    because: Annotated[str, Meta(description="Why, such as: INC-4711: checkout is down.", max_length=1024)] = ""


class Wish(NamedTuple):
    """What somebody says who wants to break the glass."""

    because: str
    seconds: int = 4 * 3600

"""Break-glass: permission to run unreviewed work for a limited time."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from msgspec import Meta

from pincompute.api.structs import StrictStruct


class BreakGlass(StrictStruct, frozen=True):
    """Emergency override of the review. Set by the desk only."""

    until: Annotated[
        str,
        Meta(
            description="End of the emergency override, such as 2026-12-31T04:00:00Z.",
            pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$",
            max_length=20,
        ),
    ]
    by: Annotated[str, Meta(description="User who activated the override, such as ann.", max_length=256)] = ""
    because: Annotated[
        str, Meta(description="Reason for the override, such as: INC-4711: checkout is down.", max_length=1024)
    ] = ""


class BreakGlassRequest(NamedTuple):
    """A caller's request to activate the emergency override."""

    because: str
    duration_s: int = 4 * 3600

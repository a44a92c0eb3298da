"""The cancellation of work that ends by itself, as `pin cancel` requests it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from pincompute.api.structs import StrictStruct


class Cancellation(StrictStruct, frozen=True):
    """Ends attempts before they have finished. A later attempt is not affected, so that the work can be rerun."""

    attempt: Annotated[
        int,
        Meta(
            description="The last attempt that is cancelled, such as 2; 1 by default. Earlier ones are, too.",
            ge=1,
            le=10_000,
        ),
    ] = 1
    by: Annotated[
        str, Meta(description="The user and the reason, such as ann: the input is wrong.", max_length=256)
    ] = ""


def cancelled_by(cancellation: Cancellation | None, attempt: int) -> str:
    """The user who cancelled the attempt, and the reason; empty if it was not cancelled."""
    if cancellation is None or attempt > cancellation.attempt:
        return ""
    return cancellation.by or "an unknown user"

"""What the operator says of a PinterestTrainingJob, and remembers."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from pincompute.api.status import Status
from pincompute.api.wire import Strict


class RoleStatus(Strict, frozen=True):
    """How the copies of one role are doing."""

    name: Annotated[str, Meta(description="Which role, such as worker.", max_length=16)]
    wanted: Annotated[int, Meta(description="Copies that it has, such as 4.")] = 0
    running: Annotated[int, Meta(description="Copies whose program runs, such as 3.")] = 0
    done: Annotated[int, Meta(description="Copies that have ended well, such as 1.")] = 0
    failed: Annotated[int, Meta(description="Copies that have ended badly, such as 1.")] = 0


class TrainingJobStatus(Status, frozen=True):
    """How far the training is; that it has ended is remembered when everything that trained is gone."""

    work: Annotated[str, Meta(description="The digest of what runs: another begins anew.", max_length=64)] = ""
    ended: Annotated[str, Meta(description="When it ended; empty while it trains.", max_length=32)] = ""
    done: Annotated[int, Meta(description="Copies that have ended well, such as 5.")] = 0
    roles: Annotated[list[RoleStatus], Meta(description="Its roles, the one that leads first.", max_length=8)] = []

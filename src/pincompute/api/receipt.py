"""A submission as the desk has it on record: what was asked, and what became of it."""

from __future__ import annotations

from typing import Any

from pincompute.api.summary import Summary
from pincompute.api.wire import Wire


class Receipt(Wire, frozen=True, omit_defaults=False):
    """What the document says is no part of it: that is for those who wrote it."""

    id: str
    at: str
    who: str
    project: str
    kind: str
    name: str
    verb: str
    """deploy, delete, or how the change is called."""
    state: str
    """accepted, delivered or refused."""
    url: str
    """Where to ask again."""
    attempts: int = 0
    """How often it was carried to its platform in vain."""
    waits: str = ""
    """What kept it from arriving the last time."""
    errors: list[dict[str, Any]] = []
    """Why it was refused."""


class Outcome(Wire, frozen=True, omit_defaults=False):
    """What became of one document of a set."""

    receipt: Receipt
    summary: Summary | None = None
    """What its cluster has; nothing while it is on its way, or where the cluster has refused it."""

"""Entries of the audit log: the response behind `pin audit`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from pincompute.api.structs import LenientStruct

MAX_AUDIT_ENTRIES = 500
MAX_AUDIT_NUMBER = 2**62
"""Above the number of every entry."""


class AuditQuery(LenientStruct, frozen=True):
    """Query parameters of the audit log: a page of it, newest entry first."""

    limit: Annotated[int, Meta(ge=1, le=MAX_AUDIT_ENTRIES)] = 100
    """Maximum number of entries; at most 500."""
    before: Annotated[int, Meta(ge=1, le=MAX_AUDIT_NUMBER)] = MAX_AUDIT_NUMBER
    """Only entries with a smaller number: the `next` of the page before. The newest by default."""


class AuditEntry(LenientStruct, frozen=True, omit_defaults=False):
    number: int
    at: str
    caller: str
    act: str
    """Such as `deploy: accepted by the desk`."""
    project: str = ""
    """Empty for acts on the platform, such as the roll of a runtime."""
    object: str = ""
    """Kind and name."""
    submission: str = ""
    note: str = ""
    """Reason of an emergency override, reason code of a refusal, or details of the act."""


class AuditPage(LenientStruct, frozen=True, omit_defaults=False):
    entries: list[AuditEntry]
    """Newest first."""
    next: int | None = None
    """`before` of the next page; None on the last one."""

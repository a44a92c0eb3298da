"""The output of `pin audit`."""

from __future__ import annotations

from pincompute.api.audit import AuditEntry, AuditPage
from pincompute.cli.audit import format_audit_page

ENTRY = AuditEntry(
    number=9, at="2026-01-31T12:00:00.123456+00:00", caller="dan", act="break-glass: accepted by the desk",
    project="ads", object="PinterestService/web", submission="s-1", note="INC-1:\ncheckout is down",
)  # fmt: skip


def test_entry_is_one_line() -> None:
    assert format_audit_page(AuditPage([ENTRY]), all_projects=False) == (
        "AT                   CALLER  OBJECT                ACT                                NOTE\n"
        "2026-01-31T12:00:00  dan     PinterestService/web  break-glass: accepted by the desk  INC-1: checkout is down"
    )


def test_names_the_project_and_the_next_page() -> None:
    head, entry, more = format_audit_page(AuditPage([ENTRY], next=9), all_projects=True).splitlines()
    assert head.split() == ["AT", "CALLER", "PROJECT", "OBJECT", "ACT", "NOTE"]
    assert "dan     ads      PinterestService/web" in entry
    assert more == "older entries: pin audit --all --before 9"
    assert format_audit_page(AuditPage([]), all_projects=False) == "no entries"

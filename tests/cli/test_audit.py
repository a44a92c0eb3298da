"""The output of `pin audit`."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from fake_desk import fake_desk
from pincompute.api.audit import AuditEntry, AuditPage
from pincompute.cli.audit import format_audit_page
from pincompute.main import command_group

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


def test_note_of_a_tenant_cannot_control_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIN_STATE", str(tmp_path / "state"))
    page = AuditPage([msgspec.structs.replace(ENTRY, note="\x1b[2Jgone")])
    with fake_desk(tmp_path / "state", lambda *_: (200, page)):
        shown = CliRunner().invoke(command_group(), ["audit"])
    assert "\\x1b[2Jgone" in shown.stdout
    assert "\x1b" not in shown.stdout

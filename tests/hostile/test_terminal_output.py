"""Lines of a program must not control the terminal of the user who reads them."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from pincompute.api.logs import LogLine, LogMarker
from pincompute.api.workload_summary import WorkloadSummary
from pincompute.base.printable import printable
from pincompute.cli.list_filter import workload_table
from pincompute.cli.log_formatter import LogFormatter

CLIPBOARD = "\x1b]52;c;cm0gLXJmIH4=\x07"


@pytest.mark.parametrize("control", ["\x1b[2J", CLIPBOARD, "\x9b31m", "fine\rforged", "\b\b", "\u202eexe.txt", "\x00"])
def test_control_characters_are_written_out(control: str) -> None:
    shown = printable(f"a{control}b")
    assert all(each.isprintable() for each in shown)
    assert "\\" in shown


def test_text_stays_as_it_is() -> None:
    text = "\tübergröße 日本 C:\\n 🎉"
    assert printable(text) == text


def test_logs_of_a_pod_cannot_control_the_terminal() -> None:
    line, marker = LogLine("a", "", f"hi {CLIPBOARD}"), LogMarker("a", "", f"ended: {CLIPBOARD}")
    assert LogFormatter("web").format_item(line) == ["hi \\x1b]52;c;cm0gLXJmIH4=\\x07"]
    assert CLIPBOARD not in LogFormatter("web").format_item(marker)[0]
    # Another program gets the lines as they were printed.
    assert LogFormatter("web", raw=True).format_item(line) == [f"hi {CLIPBOARD}"]


def test_only_log_lines_of_programs_are_printed_raw() -> None:
    """Every other output of a tenant's text has no way to switch the filter off."""
    folder = Path(__file__).parents[2] / "src" / "pincompute" / "cli"
    assert [each.name for each in folder.glob("*.py") if "raw=" in each.read_text()] == ["logs.py"]


def test_message_in_a_table_cannot_control_the_terminal() -> None:
    summary = WorkloadSummary(
        kind="PinterestService", project="me", name="web", uid="1", generation=1, revision=1, goal="Ready", ready=0,
        wanted=1, image="a", reason="CrashLoop", message=f"last line: {CLIPBOARD}\nforged row",
    )  # fmt: skip
    table = click.unstyle(workload_table([summary], wide=True))
    assert CLIPBOARD not in table
    assert len(table.splitlines()) == 2

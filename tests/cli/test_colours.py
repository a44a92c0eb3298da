"""Colours by severity: on a terminal, and as NO_COLOR and FORCE_COLOR say."""

from __future__ import annotations

import click
import pytest

from pincompute.cli.colours import colour_reason, forced_colour
from pincompute.cli.table import format_table
from pincompute.cli.watch import Screen


@pytest.mark.parametrize(
    ("code", "colour"), [("Available", "green"), ("Progressing", "yellow"), ("CrashLoop", "red"), ("Newer", None)]
)
def test_reason_has_the_colour_of_its_severity(code: str, colour: str | None) -> None:
    assert colour_reason(code) == (click.style(code, fg=colour) if colour else code)


@pytest.mark.parametrize(
    ("variables", "forced"),
    [
        ({}, None),
        ({"NO_COLOR": "1"}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
    ],
)
def test_environment_decides(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], forced: bool | None) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert forced_colour() is forced


def test_colours_take_no_width_and_a_line_break_no_row() -> None:
    rows = [("NAME", "REASON", "X"), ("a", colour_reason("Available"), "1"), ("b", "two\nlines", "22")]
    lines = click.unstyle(format_table(rows, text_columns=2)).splitlines()
    assert lines == ["NAME  REASON      X", "a     Available   1", "b     two lines  22"]


def test_redrawn_lines_are_cut_to_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "6")
    monkeypatch.delenv("NO_COLOR", raising=False)
    Screen().redraw(f"{click.style('short', fg='red')}\n{click.style('too long', fg='red')}")
    assert capsys.readouterr().out == f"{click.style('short', fg='red')}\ntoo lo\n"
    monkeypatch.setenv("NO_COLOR", "1")
    Screen().redraw(click.style("short", fg="red"))
    assert capsys.readouterr().out == "short\n"

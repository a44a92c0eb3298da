"""Whose lines are told of what fails: of the copy that it is about, and not of those that serve on beside it."""

from __future__ import annotations

import pytest

from pincompute.api.logs import End, Life, Only, Wanted
from pincompute.controller.lines import Lines
from pincompute.controller.turns import Series, Turn, Whose

WELL = End(exit_code=0, at="2026-01-31T12:00:09Z")


def series(pod: str, created: int, *ends: End | None) -> Series:
    lives = [
        Life(pod=pod, uid=pod, container="main", restart=number, created=f"2026-01-31T12:00:0{created}Z", end=end)
        for number, end in enumerate(ends or (None,))
    ]
    return Series([Turn(pod, each, program=True) for each in lives])


def bad(second: int) -> End:
    return End(exit_code=3, at=f"2026-01-31T12:00:0{second}Z")


@pytest.mark.parametrize(
    ("only", "told"),
    [("ended", "crashes"), ("youngest", "young"), ("", "all")],
)
def test_of_whom_is_told(only: Only, told: str) -> None:
    """One that ended badly before, and that runs again, counts by that end."""
    there = [
        series("long-ago", 1, bad(2), None),
        series("crashes", 3, bad(5), None),
        series("done", 3, WELL),
        series("young", 7),
    ]
    found = Lines(None, None).choose("me", there, Whose("web", "main"), Wanted(only=only))  # type: ignore[arg-type]
    assert [each.copy for each in found] == ([told] if only else ["long-ago", "crashes", "done", "young"])


def test_where_none_has_ended_badly_the_youngest_is_meant() -> None:
    there = [series("young", 7), series("old", 1)]
    (found,) = Lines(None, None).choose("me", there, Whose("web", "main"), Wanted(only="ended"))  # type: ignore[arg-type]
    assert found.copy == "young"
    assert Lines(None, None).choose("me", [], Whose("web", "main"), Wanted(only="ended")) == []  # type: ignore[arg-type]

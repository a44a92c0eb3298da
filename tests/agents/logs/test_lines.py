"""Log lines of container runtimes, and their format for files of a log volume."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from pincompute.agents.logs import lines
from pincompute.agents.logs.lines import LogLine
from pincompute.agents.logs.position import Position, commit_line, parse_commit_line
from pincompute.agents.logs.stored_lines import join_partial_lines
from pincompute.objects.times import parse_time_ns

TIME = "2026-11-21T17:23:03.1Z"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (b"2026-11-21T17:23:03.123456789Z stdout F hello there\n", ("stdout", True, "hello there")),
        (b"2026-11-21T17:23:03.12+01:00 stderr P half", ("stderr", False, "half")),
        (b"2026-11-21T17:23:03Z stdout F \n", ("stdout", True, "")),
        (b"2026-11-21T17:23:03Z stdout F", ("stdout", True, "")),
        (b"2026-11-21T17:23:03Z stdout F:x tagged\n", ("stdout", True, "tagged")),
        (b"2026-11-21T17:23:03Z stdout F \xff\n", ("stdout", True, "\N{REPLACEMENT CHARACTER}")),
        (b"2026-11-21T17:23:03Z stdout F a\rb\n", ("stdout", True, "a\rb")),
    ],
)
def test_parses_line_of_container_runtime(written: bytes, read: tuple[str, bool, str]) -> None:
    found = lines.parse_line(written)
    assert found is not None
    assert found[1:] == read


@pytest.mark.parametrize(
    "written", [b"", b"# 0 9 mark", b"hello", b"2026-11-21T17:23:03Z other F x", b"2026 stdout F x"]
)
def test_rejects_other_lines(written: bytes) -> None:
    assert lines.parse_line(written) is None


@given(st.binary(max_size=200).map(lambda text: text + b"\n"))
def test_file_lines_round_trip(text: bytes) -> None:
    formatted = lines.format_file_lines(text, TIME)
    read = [each for each in map(lines.parse_line, formatted.split(b"\n")[:-1]) if each]
    assert [each.text for each in join_partial_lines(iter(read))] == [
        line.decode("utf-8", "replace") for line in text[:-1].split(b"\n")
    ]


def test_splits_and_joins_long_line() -> None:
    formatted = lines.format_file_lines(b"x" * (2 * lines.MAX_LINE_BYTES + 1) + b"\n", TIME)
    partial_lines = [each for each in map(lines.parse_line, formatted.split(b"\n")[:-1]) if each]
    assert [each.complete for each in partial_lines] == [False, False, True]
    assert [len(each.text) for each in join_partial_lines(iter(partial_lines))] == [2 * lines.MAX_LINE_BYTES + 1]


def test_joins_partial_lines_per_stream() -> None:
    found = [
        LogLine(TIME, "stdout", False, "a"),
        LogLine(TIME, "stderr", True, "x"),
        LogLine(TIME, "stdout", True, "b"),
    ]
    assert [each.text for each in join_partial_lines(iter(found))] == ["x", "ab"]


@given(st.integers(0, 9), st.integers(0, 10**9), st.sampled_from(["", "7:64:abc", "mark with words"]))
def test_commit_line_round_trip(segment: int, offset: int, mark: str) -> None:
    assert parse_commit_line(commit_line(Position(segment, offset, mark))) == Position(segment, offset, mark)


def test_timestamps_compare_by_time() -> None:
    spelt = [
        "2026-11-21T17:23:03Z",
        "2026-11-21T18:23:03.05+01:00",
        "2026-11-21T17:23:03.1Z",
        "2026-11-21T17:23:03.12Z",
    ]
    assert sorted(spelt, key=parse_time_ns) == spelt

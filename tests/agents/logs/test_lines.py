"""Lines as runtimes write them, and as files of a log volume become them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pincompute.agents.logs import lines
from pincompute.agents.logs.lines import Line
from pincompute.agents.logs.place import Position, committed, position_of
from pincompute.agents.logs.store import joined
from pincompute.objects.times import instant

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
def test_a_line_of_a_runtime(written: bytes, read: tuple[str, bool, str]) -> None:
    found = lines.read(written)
    assert found is not None
    assert found[1:] == read


@pytest.mark.parametrize(
    "written", [b"", b"# 0 9 mark", b"hello", b"2026-11-21T17:23:03Z other F x", b"2026 stdout F x"]
)
def test_what_is_no_line(written: bytes) -> None:
    assert lines.read(written) is None


@given(st.binary(max_size=200).map(lambda text: text + b"\n"))
def test_whatever_is_written_into_a_file_comes_out_again(text: bytes) -> None:
    wrapped = lines.wrapped(text, TIME)
    read = [each for each in map(lines.read, wrapped.split(b"\n")[:-1]) if each]
    assert [each.text for each in joined(iter(read))] == [
        line.decode("utf-8", "replace") for line in text[:-1].split(b"\n")
    ]


def test_a_line_that_is_too_long_goes_in_pieces_and_is_one_again() -> None:
    wrapped = lines.wrapped(b"x" * (2 * lines.LONGEST + 1) + b"\n", TIME)
    pieces = [each for each in map(lines.read, wrapped.split(b"\n")[:-1]) if each]
    assert [each.whole for each in pieces] == [False, False, True]
    assert [len(each.text) for each in joined(iter(pieces))] == [2 * lines.LONGEST + 1]


def test_pieces_of_two_streams_are_told_apart() -> None:
    found = [Line(TIME, "stdout", False, "a"), Line(TIME, "stderr", True, "x"), Line(TIME, "stdout", True, "b")]
    assert [each.text for each in joined(iter(found))] == ["x", "ab"]


@given(st.integers(0, 9), st.integers(0, 10**9), st.sampled_from(["", "7:64:abc", "mark with words"]))
def test_a_position_is_read_as_it_was_written(segment: int, offset: int, mark: str) -> None:
    assert position_of(committed(Position(segment, offset, mark))) == Position(segment, offset, mark)


def test_times_compare_however_they_are_spelt() -> None:
    spelt = [
        "2026-11-21T17:23:03Z",
        "2026-11-21T18:23:03.05+01:00",
        "2026-11-21T17:23:03.1Z",
        "2026-11-21T17:23:03.12Z",
    ]
    assert sorted(spelt, key=instant) == spelt

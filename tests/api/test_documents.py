"""YAML as kubectl reads it, and every line remembered."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pincompute.api.documents import MAX_BYTES, read, scalar
from pincompute.base.problem import Refused


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e3", 1000),
        ("0o17", 15),
        ("017", 15),
        ("0x1f", 31),
        ("-0x1f", -31),
        ("09", "09"),
        ("0b2", "0b2"),
        ("12:30:45", "12:30:45"),
        ("2026-01-31", "2026-01-31"),
        ("on", True),
        ("n", False),
        ("~", None),
        ("", None),
        ("1.5", 1.5),
        ("-7", -7),
        ("1.2.3", "1.2.3"),
        ("hello:dev", "hello:dev"),
        ("9" * 5_000, "9" * 5_000),
    ],
)
def test_scalars(text: str, value: Any) -> None:
    assert scalar(text) == value
    assert type(scalar(text)) is type(value)


def test_quotes_make_a_text() -> None:
    (document,) = read("a: 'on'\nb: \"017\"\nc: |\n  1\n")
    assert document.content == {"a": "on", "b": "017", "c": "1\n"}


def test_lines_are_those_of_the_fields() -> None:
    (document,) = read("a: 1\nb:\n  c:\n  - d\n  - e\n", "x.yaml")
    assert document.where("b", "c").line == 3
    assert document.where("b", "c", 1).line == 5
    assert document.where("b", "missing", "deeper").line == 2
    assert str(document.where("b", "c")) == "x.yaml:3 b.c"


def test_several_documents_and_empty_ones() -> None:
    assert [document.content for document in read("---\n---\na: 1\n---\nb: 2\n")] == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\na: 2\n", "x.yaml:2 a: 'a' stands here again, first in line 1"),
        ("a: [1\n", "x.yaml:2: this is not YAML"),
        ("- a\n", "must be a set of fields"),
        ("", "holds no document"),
        ("? [a]\n: b\n", "a field's name must be a text"),
        ("a: &x {b: 1}\nc: *x\n", "x.yaml:2 c: anchors and aliases are not for workload files"),
        ("a: *x\n", "x.yaml:1 a: anchors and aliases are not for workload files"),
        ("a: 1\na: 2\n---\nb: [", "x.yaml:2 a: 'a' stands here again"),
        ("\0", "this is not YAML"),
        ("a: " + "x" * MAX_BYTES, "more than 1,048,576 bytes"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(Refused) as refused:
        read(text, "x.yaml")
    assert told in refused.value.text()


@pytest.mark.parametrize("one", ["[", "{a: ", "? ", "- ", "[{a: ", "a: [" * 10 + "]" * 9 + ", b: ["])
def test_what_is_too_deep_is_refused_before_the_stack_ends(one: str) -> None:
    with pytest.raises(Refused, match="this is more than 64 fields deep"):
        read((one * MAX_BYTES)[:MAX_BYTES])


@pytest.mark.parametrize("one", ["- x\n", "x,", "--- {a: b}\n", "*a,", "a: x\n", "? [a]\n"])
def test_what_would_take_long_is_refused_before_it_does(one: str) -> None:
    begins = "[&a x," if one.endswith(",") else ""
    whole = begins + one * (MAX_BYTES // len(one) - len(begins))
    with pytest.raises(Refused, match="more than 20,000 names and values"):
        read(whole)
    # A file that is only large is nothing special.
    assert read("a: |\n" + "  x, y\n" * 100_000)[0].content == {"a": "x, y\n" * 100_000}


def test_a_yaml_bomb_is_refused_before_it_grows() -> None:
    bomb = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    for each in (bomb, f"a: &a {'x' * 500_000}\nb: [{'*a, ' * 10_000}]"):
        with pytest.raises(Refused, match="anchors and aliases"):
            read(each)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(Refused):
        read(text)


def test_each_document_is_known_as_it_stands() -> None:
    """What is sent on of a set reads as it did, line by line."""
    first, *others = read("# ä\na: |+\n  x\n\n---\n  b: ü\n  c: 2 # why\n--- {d: 3}\n...\n%YAML 1.1\n---\ne: 4\n")
    assert [each.text for each in others] == ["  b: ü\n  c: 2 # why\n", "--- {d: 3}", "e: 4\n"]
    assert first.text.startswith("a: |+")
    for each in (first, *others):
        assert [again.content for again in read(each.text)] == [each.content]

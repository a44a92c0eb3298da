"""YAML documents with kubectl's scalar rules and the line of every field."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pincompute.api.documents import MAX_FILE_BYTES, parse_scalar, read_documents
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
def test_parses_scalar_like_kubectl(text: str, value: Any) -> None:
    assert parse_scalar(text) == value
    assert type(parse_scalar(text)) is type(value)


def test_quoted_scalar_is_string() -> None:
    (document,) = read_documents("a: 'on'\nb: \"017\"\nc: |\n  1\n")
    assert document.content == {"a": "on", "b": "017", "c": "1\n"}


def test_records_line_of_every_field() -> None:
    (document,) = read_documents("a: 1\nb:\n  c:\n  - d\n  - e\n", "x.yaml")
    assert document.where("b", "c").line == 3
    assert document.where("b", "c", 1).line == 5
    assert document.where("b", "missing", "deeper").line == 2
    assert str(document.where("b", "c")) == "x.yaml:3 b.c"


def test_reads_several_documents_and_skips_empty_ones() -> None:
    assert [document.content for document in read_documents("---\n---\na: 1\n---\nb: 2\n")] == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\na: 2\n", "x.yaml:2 a: duplicate field 'a', first set in line 1"),
        ("a: [1\n", "x.yaml:2: invalid YAML"),
        ("- a\n", "must be a mapping"),
        ("", "is empty"),
        ("? [a]\n: b\n", "a field name must be a string"),
        ("a: *x\n", "x.yaml:1 a: alias *x has no anchor before it"),
        ("a: &x {b: *x}\n", "x.yaml:1 a.b: alias *x has no anchor before it"),
        ("a: &x 1\n---\nb: *x\n", "x.yaml:3 b: alias *x has no anchor before it"),
        ("a:\n  <<: 1\n", "x.yaml:2 a: << must be followed by a mapping or a list of mappings"),
        ("a: 1\na: 2\n---\nb: [", "x.yaml:2 a: duplicate field 'a'"),
        ("\0", "invalid YAML"),
        ("a: " + "x" * MAX_FILE_BYTES, "larger than 1,048,576 bytes"),
    ],
)
def test_reports_error_with_line(text: str, message: str) -> None:
    with pytest.raises(Refused) as refused:
        read_documents(text, "x.yaml")
    assert message in refused.value.text()


@pytest.mark.parametrize("unit", ["[", "{a: ", "? ", "- ", "[{a: ", "a: [" * 10 + "]" * 9 + ", b: ["])
def test_rejects_deep_nesting_before_stack_overflow(unit: str) -> None:
    with pytest.raises(Refused, match="more than 64 levels of nesting"):
        read_documents((unit * MAX_FILE_BYTES)[:MAX_FILE_BYTES])


@pytest.mark.parametrize("unit", ["- x\n", "x,", "--- {a: b}\n", "*a,", "a: x\n", "? [a]\n"])
def test_rejects_too_many_values_while_parsing(unit: str) -> None:
    start = "[&a x," if unit.endswith(",") else ""
    text = start + unit * (MAX_FILE_BYTES // len(unit) - len(start))
    with pytest.raises(Refused, match="more than 20,000 names and values"):
        read_documents(text)
    # A large file alone is accepted.
    assert read_documents("a: |\n" + "  x, y\n" * 100_000)[0].content == {"a": "x, y\n" * 100_000}


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("a: &x {b: [1]}\nc: *x\n", {"a": {"b": [1]}, "c": {"b": [1]}}),
        ("a: &x 1\nb: [*x, *x]\n", {"a": 1, "b": [1, 1]}),
        ("a: &x {b: &y [1]}\nc: [*x, *y]\n", {"a": {"b": [1]}, "c": [{"b": [1]}, [1]]}),
        ("a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  b: 3\n", {"a": {"b": 1, "c": 2}, "d": {"b": 3, "c": 2}}),
        (
            "a: &x {b: 1}\nc: &y {b: 2, d: 3}\ne: {<<: [*x, *y]}\n",
            {"a": {"b": 1}, "c": {"b": 2, "d": 3}, "e": {"b": 1, "d": 3}},
        ),
        ('a: {"<<": 1}\n', {"a": {"<<": 1}}),
        ("a: &x 1\nb: &x 2\nc: *x\n", {"a": 1, "b": 2, "c": 2}),
    ],
)
def test_expands_aliases(text: str, content: object) -> None:
    assert read_documents(text)[0].content == content


def test_expanded_values_are_copies() -> None:
    content = read_documents("a: &x {b: 1}\nc: *x\n")[0].content
    content["a"]["b"] = 2
    assert content["c"] == {"b": 1}


def test_error_in_an_alias_has_the_line_of_the_alias() -> None:
    document = read_documents("a: &x\n  b: 1\nc: *x\n", "x.yaml")[0]
    assert str(document.where("c", "b")) == "x.yaml:3 c.b"


DOUBLED = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in pairwise("abcdefghijklmnopq"))
NESTED = "a: &a [x]\n" + "".join(f"{b}: &{b} {'[' * 10}*{a}{']' * 10}\n" for a, b in pairwise("abcdefgh"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DOUBLED, "more than 20,000 names and values"),
        (f"a: &a {'x' * 500_000}\nb: [{'*a, ' * 10_000}]", "more than 1,048,576 characters"),
        (NESTED, "more than 64 levels of nesting"),
        ("a: &a {" + ", ".join(f"k{n}: 1" for n in range(5_000)) + "}\nb:\n" + "  <<: *a\n" * 9, "more than 20,000"),
    ],
)
def test_aliases_count_as_what_they_refer_to(text: str, message: str) -> None:
    with pytest.raises(Refused, match=message):
        read_documents(text)


@given(st.text())
def test_any_text_is_parsed_or_refused(text: str) -> None:
    with suppress(Refused):
        read_documents(text)


def test_keeps_source_text_of_each_document() -> None:
    """A document of a set can be sent on alone, with unchanged content."""
    first, *others = read_documents(
        "# ä\na: |+\n  x\n\n---\n  b: ü\n  c: 2 # why\n--- {d: 3}\n...\n%YAML 1.1\n---\ne: 4\n"
    )
    assert [each.text for each in others] == ["  b: ü\n  c: 2 # why\n", "--- {d: 3}", "e: 4\n"]
    assert first.text.startswith("a: |+")
    for each in (first, *others):
        assert [again.content for again in read_documents(each.text)] == [each.content]

"""Rules: read, written again, asked, and explained; the library itself is the measure of all four."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pincompute.base.problem import Part
from pincompute.objects.cel.rule import Fails, Known, part, read
from pincompute.objects.cel.syntax import Const, Name, Node, NotRead, every
from pincompute.objects.cel.text import written
from pincompute.objects.cel.verdict import tree

WORLD: dict[str, Any] = {
    "a": {"one": 1, "no": False, "yes": True, "text": "it's \\ \n ü", "half": 0.5, "none": None, "list": [1, 2, 3]},
    "b": {"items": [{"name": "x", "n": 1}, {"name": "y"}], "map": {"k": "v"}, "odd-name": 1},
}
KNOWN = Known(WORLD, WORLD)

_numbers = st.sampled_from(["a.one", "1", "-1", "2u", "0.5", "a.list[0]", "size(a.list)", "b.items[0].n", "-a.one"])
_texts = st.sampled_from(["a.text", "'x'", "b.map.k", "b.map['k']", r"'it\'s \\ \n'", "string(a.one)", "b.nothing"])
_sums = st.builds("({} {} {})".format, _numbers, st.sampled_from("+-*/%"), _numbers)
_bare_sums = st.builds("{} {} {} - {}".format, _numbers, st.sampled_from("+-*/%"), _numbers, _numbers)
_relations = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
_leaves = st.one_of(
    st.builds("{} {} {}".format, _numbers | _sums | _bare_sums, _relations, _numbers | _sums),
    st.builds("{} {} {}".format, _texts, _relations, _texts),
    st.builds("{}.startsWith({})".format, _texts, _texts),
    st.builds("{} in [{}, {}]".format, _numbers, _numbers, _numbers),
    st.sampled_from(["a.yes", "a.no", "has(a.nothing)", "has(b.map.k)", "'k' in b.map", "a.none == null", "a.one"]),
    st.sampled_from(["b.items.all(i, has(i.n))", "b.items.exists(i, i.n == 1)", "b.map.exists_one(k, k == 'k')"]),
    st.sampled_from(["{'a': 1, 'b': a.one}.b == 1", "b.`odd-name` == 1", "b'\\xff' == b'a'", "[].all(x, false)"]),
    st.sampled_from(["a.list.all(x, a.list.exists(y, y > x))", "b.items.all(i, i.n > 0)", "a.list[9] == 1"]),
)


def _wider(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    joined = st.sampled_from(["{} && {}", "{} || {}", "({} && {})", "({} || {})"])
    return st.one_of(
        st.builds(str.format, joined, inner, inner),
        st.builds("!({})".format, inner),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
        st.builds("a.list.all(x, {} || x > 1)".format, inner),
        st.builds("a.list.exists(x, x > 2 && {})".format, inner),
    )


# What any of them is made of can be anything, and the whole says yes or no.
RULES = st.builds("({}) == true".format, st.recursive(_leaves, _wider, max_leaves=6)) | st.recursive(
    _leaves, _wider, max_leaves=6
)


def _read(text: str) -> Any:
    try:
        return read(text, KNOWN.names)
    except NotRead:
        return None


@given(RULES)
def test_what_is_written_is_read_as_the_same(text: str) -> None:
    rule = _read(text)
    if rule is None:
        return
    again = part(written(rule.root), KNOWN.names)
    assert _bare(again.root) == _bare(rule.root)
    assert again.value(KNOWN) == rule.value(KNOWN)
    assert written(again.root) == written(rule.root)


@given(RULES)
def test_a_rule_and_its_tree_agree(text: str) -> None:
    rule = _read(text)
    if rule is None or (value := rule.value(KNOWN)) is True:
        return
    found = tree(rule, KNOWN)
    assert found.says == written(rule.root)
    assert found.decided
    assert all(_decided_by_one(each) for each in _parts(found)), found
    if isinstance(value, Fails):
        assert any(each.is_ not in {"", "is true", "is false"} for each in _parts(found)), found


def _decided_by_one(each: Part) -> bool:
    """Who decided was decided by one of its own, and who did not is not explained further."""
    return not each.parts or (each.decided and any(inner.decided for inner in each.parts))


def _parts(found: Part) -> Iterator[Part]:
    yield found
    for each in found.parts:
        yield from _parts(each)


def _bare(node: Node) -> list[object]:
    """Whatever stands where."""
    return [each.value if isinstance(each, Const) else type(each).__name__ for each in every(node)] + [
        each.name for each in every(node) if isinstance(each, Name)
    ]


@pytest.mark.parametrize(
    ("text", "column", "what"),
    [
        ("a.one ==", 9, "it ends too early"),
        ("a.one == 1 &&& true", 14, "token recognition error at: '& '"),
        ("ab.one == 1", 3, "undeclared reference to 'ab.one'"),
        ("a.one == 1 || c", 15, "undeclared reference to 'c'"),
        ("1 + 'a' == 2", 3, "found no matching overload for '_+_' applied to '(int, string)'"),
        ("a.one", 1, "it can be anything (ask == true), and must say yes or no"),
        ("1 + 1", 1, "it is int, and must say yes or no"),
        ("a.list.map(x, x).size() == 1", 11, "none with map or filter"),
        ("a.list.filter(x, x > 1) == []", 14, "none with map or filter"),
        ("a.list.all(x, a.list.all(y, a.list.all(z, z > 0)))", 0, "more than 2 deep"),
        ("google.protobuf.Struct{} == a", 1, "no word for this"),
        ("a.?b == 1", 1, "unsupported syntax"),
        ("true" + " && true" * 300, 0, "2,000 is the most"),
        ("a.one in [" + ",".join("1" * 600) + "]", 0, "more than 400 parts"),
        ("", 1, "it ends too early"),
    ],
)
def test_what_is_no_rule(text: str, column: int, what: str) -> None:
    with pytest.raises(NotRead) as told:
        read(text, KNOWN.names)
    assert what in str(told.value)
    assert told.value.column == column


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a.nothing == 1", 'Key not found in map : "nothing"'),
        ("a.list.all(x, x / 0 == 1)", "divide by zero"),
        ("a.one.startsWith('x')", "No matching overloads found"),
        ("a.list[7] == 1", "index"),
        ("a.text.matches('(')", "missing ): ("),
        ("b.big == 1", "out of range"),
        ("b.many.all(x, x == 0)", "Iteration budget exceeded"),
    ],
)
def test_what_has_no_answer(text: str, why: str) -> None:
    beyond = {"big": 2**70} if "big" in text else {"many": [0] * 20_000}
    found = read(text, KNOWN.names).value(Known({**WORLD, "b": beyond}, WORLD))
    assert isinstance(found, Fails)
    assert why in found.why
    assert "INVALID_ARGUMENT" not in found.why

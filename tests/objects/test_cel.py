"""CEL rules: compiled, unparsed, evaluated and explained, and compared with the library's own results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pincompute.base.problem import RulePart
from pincompute.objects.cel.explanation import explain_failure
from pincompute.objects.cel.rule import EvaluationError, RuleInputs, compile_expression, compile_rule
from pincompute.objects.cel.syntax import Call, Constant, Identifier, InvalidRule, Node, walk_nodes
from pincompute.objects.cel.unparse import unparse

VALUES: dict[str, Any] = {
    "a": {"one": 1, "no": False, "yes": True, "text": "it's \\ \n ü", "half": 0.5, "none": None, "list": [1, 2, 3]},
    "b": {"items": [{"name": "x", "n": 1}, {"name": "y"}], "map": {"k": "v"}, "odd-name": 1},
}
INPUTS = RuleInputs(VALUES, VALUES)

_numbers = st.sampled_from(["a.one", "1", "-1", "2u", "0.5", "a.list[0]", "size(a.list)", "b.items[0].n", "-a.one"])
_strings = st.sampled_from(["a.text", "'x'", "b.map.k", "b.map['k']", r"'it\'s \\ \n'", "string(a.one)", "b.nothing"])
_sums = st.builds("({} {} {})".format, _numbers, st.sampled_from("+-*/%"), _numbers)
_bare_sums = st.builds("{} {} {} - {}".format, _numbers, st.sampled_from("+-*/%"), _numbers, _numbers)
_relations = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
_leaves = st.one_of(
    st.builds("{} {} {}".format, _numbers | _sums | _bare_sums, _relations, _numbers | _sums),
    st.builds("{} {} {}".format, _strings, _relations, _strings),
    st.builds("{}.startsWith({})".format, _strings, _strings),
    st.builds("{} in [{}, {}]".format, _numbers, _numbers, _numbers),
    st.sampled_from(["a.yes", "a.no", "has(a.nothing)", "has(b.map.k)", "'k' in b.map", "a.none == null", "a.one"]),
    st.sampled_from(["b.items.all(i, has(i.n))", "b.items.exists(i, i.n == 1)", "b.map.exists_one(k, k == 'k')"]),
    st.sampled_from(["{'a': 1, 'b': a.one}.b == 1", "b.`odd-name` == 1", "b'\\xff' == b'a'", "[].all(x, false)"]),
    st.sampled_from(["a.list.all(x, a.list.exists(y, y > x))", "b.items.all(i, i.n > 0)", "a.list[9] == 1"]),
)


def _compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    joined = st.sampled_from(["{} && {}", "{} || {}", "({} && {})", "({} || {})"])
    return st.one_of(
        st.builds(str.format, joined, inner, inner),
        st.builds("!({})".format, inner),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
        st.builds("a.list.all(x, {} || x > 1)".format, inner),
        st.builds("a.list.exists(x, x > 2 && {})".format, inner),
    )


# Subexpressions may have any type; the whole is boolean.
RULES = st.builds("({}) == true".format, st.recursive(_leaves, _compound, max_leaves=6)) | st.recursive(
    _leaves, _compound, max_leaves=6
)


def _compiled_or_none(text: str) -> Any:
    try:
        return compile_rule(text, INPUTS.names)
    except InvalidRule:
        return None


@given(RULES)
def test_unparsed_rule_compiles_to_same_tree(text: str) -> None:
    rule = _compiled_or_none(text)
    if rule is None:
        return
    again = compile_expression(unparse(rule.root), INPUTS.names)
    assert _summary(again.root) == _summary(rule.root)
    assert again.evaluate(INPUTS) == rule.evaluate(INPUTS)
    assert unparse(again.root) == unparse(rule.root)


@given(RULES)
def test_explanation_matches_result(text: str) -> None:
    rule = _compiled_or_none(text)
    if rule is None or (value := rule.evaluate(INPUTS)) is True:
        return
    found = explain_failure(rule, INPUTS)
    assert found.expression == unparse(rule.root)
    assert found.decided
    assert all(_is_consistent(each) for each in _all_parts(found)), found
    if isinstance(value, EvaluationError):
        assert any(each.value not in {"", "is true", "is false"} for each in _all_parts(found)), found


def _is_consistent(each: RulePart) -> bool:
    """A decisive part has a decisive subpart; other parts are not explained further."""
    return not each.parts or (each.decided and any(inner.decided for inner in each.parts))


def _all_parts(found: RulePart) -> Iterator[RulePart]:
    yield found
    for each in found.parts:
        yield from _all_parts(each)


def _summary(node: Node) -> list[object]:
    """Literals, node types and identifiers in order. How a chain of && or || is nested has no meaning."""
    nodes = [each for each in walk_nodes(node) if not (isinstance(each, Call) and each.function in {"_&&_", "_||_"})]
    return [each.value if isinstance(each, Constant) else type(each).__name__ for each in nodes] + [
        each.name for each in nodes if isinstance(each, Identifier)
    ]


@pytest.mark.parametrize(
    ("text", "column", "what"),
    [
        ("a.one ==", 9, "unexpected end"),
        ("a.one == 1 &&& true", 14, "token recognition error at: '& '"),
        ("ab.one == 1", 3, "undeclared reference to 'ab.one'"),
        ("a.one == 1 || c", 15, "undeclared reference to 'c'"),
        ("1 + 'a' == 2", 3, "found no matching overload for '_+_' applied to '(int, string)'"),
        ("a.one", 1, "it must be true or false, but is of unknown type (add == true)"),
        ("1 + 1", 1, "it must be true or false, but is int"),
        ("a.list.map(x, x).size() == 1", 11, "not map and filter"),
        ("a.list.filter(x, x > 1) == []", 14, "not map and filter"),
        ("a.list.all(x, a.list.all(y, a.list.all(z, z > 0)))", 0, "more than 2 levels deep"),
        ("google.protobuf.Struct{} == a", 1, "not supported in policies"),
        ("a.?b == 1", 1, "unsupported syntax"),
        ("true" + " && true" * 300, 0, "the maximum is 2,000"),
        ("a.one in [" + ",".join("1" * 600) + "]", 0, "more than 400 parts"),
        ("", 1, "unexpected end"),
    ],
)
def test_rejects_invalid_rule(text: str, column: int, what: str) -> None:
    with pytest.raises(InvalidRule) as error:
        compile_rule(text, INPUTS.names)
    assert what in str(error.value)
    assert error.value.column == column


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
def test_evaluation_error(text: str, why: str) -> None:
    extreme = {"big": 2**70} if "big" in text else {"many": [0] * 20_000}
    found = compile_rule(text, INPUTS.names).evaluate(RuleInputs({**VALUES, "b": extreme}, VALUES))
    assert isinstance(found, EvaluationError)
    assert why in found.why
    assert "INVALID_ARGUMENT" not in found.why

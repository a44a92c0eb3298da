"""Explains why a rule is false: its subexpressions with their values, marked if they decided the result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from pincompute.base.problem import RulePart
from pincompute.objects.cel.rule import CompiledRule, EvaluationError, RuleInputs, compile_expression
from pincompute.objects.cel.syntax import Call, Comprehension, Constant, ListLiteral, Node, quote_string
from pincompute.objects.cel.unparse import RELATIONAL_OPERATORS, unparse

MAX_VALUE_LENGTH = 60
MAX_SHOWN_ITEMS = 3
"""Limit of items shown for a comprehension."""


def explain_failure(rule: CompiledRule, inputs: RuleInputs) -> RulePart:
    """Explain a rule that is false or failed."""
    return _Explainer(inputs).part(rule.root, decided=True)


class _Explainer(NamedTuple):
    inputs: RuleInputs

    def part(self, node: Node, *, decided: bool) -> RulePart:
        value = self.value(node)
        if not decided:
            return RulePart(unparse(node), self._value_text(node, value), decided)
        parts = tuple(self._subparts(node, value))
        return RulePart(unparse(node), "" if parts else self._value_text(node, value), decided, parts)

    def value(self, node: Node) -> Any:
        return compile_expression(unparse(node), self.inputs.names).evaluate(self.inputs)

    def _subparts(self, node: Node, value: Any) -> Iterator[RulePart]:
        match node:
            case Call(function="_&&_" | "_||_" as function):
                yield from self._operand_parts(_flattened(node, function), value)
            case Call(function="!_", arguments=(inner,)):
                yield self.part(inner, decided=True)
            case Call(function="_?_:_", arguments=(condition, then, otherwise)):
                chosen = self.value(condition)
                yield self.part(condition, decided=True)
                yield self.part(then, decided=chosen is True)
                yield self.part(otherwise, decided=chosen is False)
            case Comprehension():
                yield from self._item_parts(node, value)
            case _:
                return

    def _operand_parts(self, operands: Iterable[Node], value: Any) -> Iterator[RulePart]:
        """Operands with the value of the whole decided it; if the whole has failed, those that failed or are not
        boolean."""
        for operand in operands:
            result = self.value(operand)
            decided = not isinstance(result, bool) if isinstance(value, EvaluationError) else result is value
            yield self.part(operand, decided=decided)

    def _item_parts(self, node: Comprehension, value: Any) -> Iterator[RulePart]:
        iter_range = self.value(node.iter_range)
        # CEL iterates over the keys of a map, as Python does.
        items: Iterable[Any] = iter_range if isinstance(iter_range, (list, dict)) else ()
        explainers = [(item, _Explainer(self.inputs.with_variable(node.name, item))) for item in items]
        decisive = [
            RulePart(_item_label(node.name, item), "", decided=True, parts=(explainer.part(node.body, decided=True),))
            for item, explainer in explainers
            if _decides(node.macro, explainer.value(node.body), value)
        ]
        yield from decisive[:MAX_SHOWN_ITEMS]
        if len(decisive) > MAX_SHOWN_ITEMS:
            yield RulePart(f"and {len(decisive) - MAX_SHOWN_ITEMS} more", "", decided=True)
        if not decisive:
            yield RulePart(unparse(node.iter_range), f"is {format_value(iter_range)}", decided=True)

    def _value_text(self, node: Node, value: Any) -> str:
        if isinstance(value, EvaluationError):
            return f"cannot be evaluated: {value.why}"
        operands = tuple(_visible_operands(node))
        if not operands or not isinstance(value, bool):
            return f"is {format_value(value)}"
        return ", ".join(f"{unparse(each)} is {_result_text(self.value(each))}" for each in operands)


def _flattened(node: Node, function: str) -> Iterator[Node]:
    """Flatten `a && b && c` into three operands."""
    if isinstance(node, Call) and node.function == function:
        for argument in node.arguments:
            yield from _flattened(argument, function)
    else:
        yield node


def _visible_operands(node: Node) -> Iterator[Node]:
    """Operands of a comparison or function, except literals: their value is visible in the text."""
    if isinstance(node, Call) and (node.function in RELATIONAL_OPERATORS or node.function.isidentifier()):
        operands = node.arguments if node.target is None else (node.target, *node.arguments)
        yield from (each for each in operands if not _is_literal(each))


def _is_literal(node: Node) -> bool:
    match node:
        case Constant():
            return True
        case ListLiteral(items=items):
            return all(map(_is_literal, items))
        case _:
            return False


def _decides(macro: str, item: Any, whole: Any) -> bool:
    """An item decided `all` or `exists` if it has the value of the whole, and `exists_one` if it is true."""
    if isinstance(whole, EvaluationError):
        return isinstance(item, EvaluationError)
    return item is True if macro == "exists_one" else item is whole


def _item_label(name: str, item: Any) -> str:
    """Label an item by its name, if it has one."""
    if isinstance(item, dict) and "name" in item:
        return f"{name}.name is {format_value(item['name'])}"
    return f"{name} is {format_value(item)}"


def _result_text(value: Any) -> str:
    return f"unknown: {value.why}" if isinstance(value, EvaluationError) else format_value(value)


def format_value(value: Any) -> str:
    """Format a value in CEL syntax, cut if long."""
    if value is None or isinstance(value, bool):
        text = {None: "null", True: "true", False: "false"}[value]
    elif isinstance(value, str):
        text = quote_string(value)
    else:
        text = msgspec.json.encode(value, enc_hook=str).decode()
    return text if len(text) <= MAX_VALUE_LENGTH else text[: MAX_VALUE_LENGTH - 1] + "…"

"""Compiled CEL rules. The only module that uses the CEL library."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

from pincompute.objects.cel.syntax import (
    Comprehension,
    Identifier,
    InvalidRule,
    Node,
    child_nodes,
    decode_expression,
    walk_nodes,
)
from pincompute.objects.cel.unparse import unparse

MAX_RULE_LENGTH = 2000
MAX_NODES = 400
MAX_NESTING = 2
"""Nesting of comprehensions. The library itself stops after ten thousand iterations in total."""

_ERROR_LOCATION = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")


class EvaluationError(NamedTuple):
    """Evaluation has failed, with the reason."""

    why: str


class CompiledRule(NamedTuple):
    text: str
    root: Node
    program: Any
    """Compiled program of the library."""
    names: frozenset[str]
    """Variables that the rule reads."""

    def evaluate(self, inputs: RuleInputs) -> Any:
        """Value of the expression, or an EvaluationError."""
        return inputs.evaluate(self.program)


class RuleInputs:
    """Values of the variables, prepared once for all rules."""

    def __init__(self, values: Mapping[str, Any], names: Iterable[str]) -> None:
        self.names = tuple(sorted(names))
        """All declared variables. Those that the rule does not read need no value."""
        self._values = values
        self._activation: Any = None

    def evaluate(self, program: Any) -> Any:
        try:
            if self._activation is None:
                self._activation = _environment(self.names).Activation(dict(self._values))
            result = program.eval(self._activation)
        except (RuntimeError, ValueError, OverflowError, TypeError) as error:
            return EvaluationError(_without_status(str(error)))
        if result.type().name() == "ERROR":
            return EvaluationError(_without_status(str(result.value())))
        return result.plain_value()

    def with_variable(self, name: str, value: Any) -> RuleInputs:
        return RuleInputs({**self._values, name: value}, {*self.names, name})


def compile_rule(text: str, names: tuple[str, ...]) -> CompiledRule:
    """Compile a boolean rule over these variables. InvalidRule if it is not one."""
    if len(text) > MAX_RULE_LENGTH:
        raise InvalidRule(f"it has {len(text):,} characters, the maximum is {MAX_RULE_LENGTH:,}")
    rule = compile_expression(text, tuple(sorted(names)))
    type_ = rule.program.return_type().name()
    if type_ != "BOOL":
        found = "of unknown type (add == true)" if type_ == "DYN" else type_.lower()
        raise InvalidRule(f"it must be true or false, but is {found}", 1)
    if len(tuple(walk_nodes(rule.root))) > MAX_NODES:
        raise InvalidRule(f"it has more than {MAX_NODES} parts")
    if _nesting(rule.root) > MAX_NESTING:
        raise InvalidRule(f"all and exists are nested more than {MAX_NESTING} levels deep")
    # Raises for constructs that an explanation of the rule could not show.
    unparse(rule.root)
    return rule


@lru_cache(maxsize=4096)
def compile_expression(text: str, names: tuple[str, ...]) -> CompiledRule:
    """Compile any expression, cached: compiling takes as long as fifty evaluations."""
    try:
        program = _environment(names).compile(text)
    except RuntimeError as error:
        raise _compile_error(str(error), text) from error
    root = decode_expression(program.serialize())
    return CompiledRule(
        text, root, program, frozenset(each.name for each in walk_nodes(root) if isinstance(each, Identifier))
    )


def _nesting(node: Node) -> int:
    deepest = max(map(_nesting, child_nodes(node)), default=0)
    return deepest + isinstance(node, Comprehension)


@cache
def _environment(names: tuple[str, ...]) -> Any:
    # Imported late: the library is optional and slow to load.
    from cel_expr_python import cel

    return cel.NewEnv(variables=dict.fromkeys(names, cel.Type.DYN))


def _compile_error(message: str, text: str) -> InvalidRule:
    """Error with its column in the whole text; the library counts columns by line."""
    match = _ERROR_LOCATION.search(message)
    if not match:
        return InvalidRule(_without_status(message.splitlines()[0]))
    line, column, what = int(match[1]), int(match[2]), match[3]
    before = sum(len(each) + 1 for each in text.splitlines()[: line - 1])
    what = re.sub(r" expecting \{.*\}$", "", what).replace("mismatched input '<EOF>'", "unexpected end")
    what = what.removesuffix(" (in container '')").removeprefix("Syntax error: ")
    return InvalidRule(what, before + column)


def _without_status(message: str) -> str:
    """Message without the library's status code."""
    return re.sub(r"^[A-Z_]+: | \[[A-Z_]+\]$", "", message)

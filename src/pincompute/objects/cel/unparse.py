"""Converts a syntax tree into source text, because the library keeps no text of subexpressions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pincompute.objects.cel.syntax import (
    UNSUPPORTED,
    Call,
    Comprehension,
    Constant,
    Identifier,
    InvalidRule,
    ListLiteral,
    MapLiteral,
    Node,
    Select,
)

_BINARY_OPERATORS = {
    "_||_": 1, "_&&_": 2,
    "_==_": 3, "_!=_": 3, "_<_": 3, "_<=_": 3, "_>_": 3, "_>=_": 3, "@in": 3,
    "_+_": 4, "_-_": 4, "_*_": 5, "_/_": 5, "_%_": 5,
}  # fmt: skip
"""Binary operators with their precedence."""
_ASSOCIATIVE_OPERATORS = frozenset({"_&&_", "_||_"})
_UNARY_OPERATORS = {"!_": "!", "-_": "-"}
_UNARY_PRECEDENCE, _MEMBER_PRECEDENCE = 6, 7
RELATIONAL_OPERATORS = frozenset(name for name, precedence in _BINARY_OPERATORS.items() if precedence == 3)

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def unparse(node: Node) -> str:
    """Source text of a node. InvalidRule if it contains an unsupported construct."""
    return _text_and_precedence(node)[0]


def _text_and_precedence(node: Node) -> tuple[str, int]:
    """Source text and precedence of a node."""
    match node:
        case Call():
            return _call_text(node)
        case Constant(value=text):
            # A negative number binds like the unary minus.
            return text, _UNARY_PRECEDENCE if text.startswith("-") else _MEMBER_PRECEDENCE
        case Identifier(name=text):
            pass
        case Select(operand=operand, name=name, test_only=test_only):
            plain = (
                f"{_parenthesized(operand, _MEMBER_PRECEDENCE)}.{name if _IDENTIFIER.fullmatch(name) else f'`{name}`'}"
            )
            text = f"has({plain})" if test_only else plain
        case ListLiteral(items=items):
            text = f"[{', '.join(map(unparse, items))}]"
        case MapLiteral(pairs=pairs):
            text = "{" + ", ".join(f"{unparse(key)}: {unparse(value)}" for key, value in pairs) + "}"
        case Comprehension(macro=macro, iter_range=iter_range, name=name, body=body):
            text = f"{_parenthesized(iter_range, _MEMBER_PRECEDENCE)}.{macro}({name}, {unparse(body)})"
    return text, _MEMBER_PRECEDENCE


def _call_text(call: Call) -> tuple[str, int]:
    function, arguments = call.function, call.arguments
    if function in _BINARY_OPERATORS:
        precedence, sign = _BINARY_OPERATORS[function], function.strip("_@")
        if function in _ASSOCIATIVE_OPERATORS:
            operands = [_parenthesized(operand, precedence + 1) for operand in _operands(call)]
            return f" {sign} ".join(operands), precedence
        left, right = arguments
        # Operators are left-associative, so a right operand of the same precedence was in parentheses.
        return f"{_parenthesized(left, precedence)} {sign} {_parenthesized(right, precedence + 1)}", precedence
    if function in _UNARY_OPERATORS:
        return f"{_UNARY_OPERATORS[function]}{_parenthesized(arguments[0], _MEMBER_PRECEDENCE)}", _UNARY_PRECEDENCE
    if function == "_[_]":
        return f"{_parenthesized(arguments[0], _MEMBER_PRECEDENCE)}[{unparse(arguments[1])}]", _MEMBER_PRECEDENCE
    if function == "_?_:_":
        condition, then, otherwise = arguments
        return f"{_parenthesized(condition, 1)} ? {_parenthesized(then, 1)} : {unparse(otherwise)}", 0
    if not _IDENTIFIER.fullmatch(function):
        raise InvalidRule(UNSUPPORTED, call.at + 1)
    target = f"{_parenthesized(call.target, _MEMBER_PRECEDENCE)}." if call.target is not None else ""
    return f"{target}{function}({', '.join(map(unparse, arguments))})", _MEMBER_PRECEDENCE


def _operands(call: Call) -> Iterator[Node]:
    """Operands of a chain such as `a && b && c`. The library balances its tree, whatever parentheses there were."""
    for operand in call.arguments:
        if isinstance(operand, Call) and operand.function == call.function:
            yield from _operands(operand)
        else:
            yield operand


def _parenthesized(node: Node, precedence: int) -> str:
    text, own = _text_and_precedence(node)
    return text if own >= precedence else f"({text})"

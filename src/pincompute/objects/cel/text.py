"""A part of a rule, written as a person would: the library keeps no text of the parts."""

from __future__ import annotations

import re

from pincompute.objects.cel.syntax import NO_WORDS, Call, Const, Each, Entries, Field, Items, Name, Node, NotRead

_BETWEEN = {
    "_||_": 1, "_&&_": 2,
    "_==_": 3, "_!=_": 3, "_<_": 3, "_<=_": 3, "_>_": 3, "_>=_": 3, "@in": 3,
    "_+_": 4, "_-_": 4, "_*_": 5, "_/_": 5, "_%_": 5,
}  # fmt: skip
"""What stands between two others, and how closely it binds them."""
_BEFORE = {"!_": "!", "-_": "-"}
_UNARY, _MEMBER = 6, 7
RELATIONS = frozenset(name for name, binds in _BETWEEN.items() if binds == 3)

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def written(node: Node) -> str:
    return _written(node)[0]


def _written(node: Node) -> tuple[str, int]:
    """And how closely it holds together by itself."""
    match node:
        case Call():
            return _called(node)
        case Const(value=text):
            # A number below nothing begins as what is taken away from nothing does.
            return text, _UNARY if text.startswith("-") else _MEMBER
        case Name(name=text):
            pass
        case Field(of=of, name=name, asked=asked):
            plain = f"{_within(of, _MEMBER)}.{name if _IDENTIFIER.fullmatch(name) else f'`{name}`'}"
            text = f"has({plain})" if asked else plain
        case Items(items=items):
            text = f"[{', '.join(map(written, items))}]"
        case Entries(pairs=pairs):
            text = "{" + ", ".join(f"{written(key)}: {written(value)}" for key, value in pairs) + "}"
        case Each(macro=macro, over=over, name=name, part=part):
            text = f"{_within(over, _MEMBER)}.{macro}({name}, {written(part)})"
    return text, _MEMBER


def _called(call: Call) -> tuple[str, int]:
    function, arguments = call.function, call.arguments
    if function in _BETWEEN:
        binds, sign = _BETWEEN[function], function.strip("_@")
        left, right = arguments
        # What stands to the right of its like is there because somebody put it into brackets.
        return f"{_within(left, binds)} {sign} {_within(right, binds + 1)}", binds
    if function in _BEFORE:
        return f"{_BEFORE[function]}{_within(arguments[0], _MEMBER)}", _UNARY
    if function == "_[_]":
        return f"{_within(arguments[0], _MEMBER)}[{written(arguments[1])}]", _MEMBER
    if function == "_?_:_":
        asked, then, otherwise = arguments
        return f"{_within(asked, 1)} ? {_within(then, 1)} : {written(otherwise)}", 0
    if not _IDENTIFIER.fullmatch(function):
        raise NotRead(NO_WORDS, call.at + 1)
    target = f"{_within(call.target, _MEMBER)}." if call.target is not None else ""
    return f"{target}{function}({', '.join(map(written, arguments))})", _MEMBER


def _within(node: Node, binds: int) -> str:
    text, own = _written(node)
    return text if own >= binds else f"({text})"

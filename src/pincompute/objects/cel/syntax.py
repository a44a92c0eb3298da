"""Syntax tree of a CEL expression, decoded from the serialized form of the compiled program.

The format is `CheckedExpr` of cel/expr/checked.proto. It is decoded by hand because the library brings no Python
classes for it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

UNSUPPORTED = "this construct is not supported in policies"
LIST_MACROS_UNSUPPORTED = "policies support the macros all, exists and exists_one, but not map and filter"


class InvalidRule(ValueError):  # noqa: N818  (the name states the problem)
    """The rule cannot be compiled or uses an unsupported construct. `column` counts from 1; 0 if unknown."""

    def __init__(self, what: str, column: int = 0) -> None:
        super().__init__(what)
        self.column = column


class Constant(NamedTuple):
    """A literal."""

    at: int
    value: str
    """Source text of the literal."""


class Identifier(NamedTuple):
    at: int
    name: str


class Select(NamedTuple):
    at: int
    operand: Node
    name: str
    test_only: bool
    """Presence test: `has(a.b)`."""


class Call(NamedTuple):
    """A function call. Operators are calls with names such as `_&&_`."""

    at: int
    function: str
    target: Node | None
    arguments: tuple[Node, ...]


class ListLiteral(NamedTuple):
    at: int
    items: tuple[Node, ...]


class MapLiteral(NamedTuple):
    at: int
    pairs: tuple[tuple[Node, Node], ...]


class Comprehension(NamedTuple):
    """A macro: `over.all(name, body)`, `exists` or `exists_one`."""

    at: int
    macro: str
    iter_range: Node
    name: str
    body: Node


Node = Constant | Identifier | Select | Call | ListLiteral | MapLiteral | Comprehension


def child_nodes(node: Node) -> tuple[Node, ...]:
    """Direct children of a node."""
    match node:
        case Constant() | Identifier():
            return ()
        case Select(operand=operand):
            return (operand,)
        case Call(target=target, arguments=arguments):
            return arguments if target is None else (target, *arguments)
        case ListLiteral(items=items):
            return items
        case MapLiteral(pairs=pairs):
            return tuple(each for pair in pairs for each in pair)
        case Comprehension(iter_range=iter_range, body=body):
            return (iter_range, body)


def walk_nodes(node: Node) -> Iterator[Node]:
    """The node and all its descendants."""
    yield node
    for child in child_nodes(node):
        yield from walk_nodes(child)


def decode_expression(checked: bytes) -> Node:
    """Decode a serialized program."""
    ast = _last_bytes(checked, 2)
    root, source_info = _last_bytes(ast, 4), _last_bytes(ast, 5)
    positions = {_first_number(each, 1): _first_number(each, 2) for each in _all_bytes(source_info, 4)}
    return _Decoder(positions).node(root)


class _Decoder:
    """Decodes `Expr` messages. The numbers are field numbers of cel/expr/syntax.proto."""

    def __init__(self, positions: dict[int, int]) -> None:
        self._positions = positions
        self._decoders: dict[int, Callable[[int, bytes], Node | None]] = {
            3: lambda at, data: Constant(at, _constant_text(data)),
            4: lambda at, data: Identifier(at, _string(data, 1)),
            5: lambda at, data: Select(
                at, self.node(_last_bytes(data, 1)), _string(data, 2), bool(_first_number(data, 3))
            ),
            6: self._call,
            7: lambda at, data: ListLiteral(at, self._nodes(data, 1)),
            8: self._map_literal,
            9: self._comprehension,
        }

    def node(self, data: bytes) -> Node:
        at = self._positions.get(_first_number(data, 2), 0)
        for field, value in _message_fields(data):
            if field in self._decoders and isinstance(value, bytes) and (node := self._decoders[field](at, value)):
                return node
        raise InvalidRule(UNSUPPORTED, at + 1)

    def _nodes(self, data: bytes, number: int) -> tuple[Node, ...]:
        return tuple(map(self.node, _all_bytes(data, number)))

    def _call(self, at: int, data: bytes) -> Call:
        target = _last_bytes(data, 1)
        return Call(at, _string(data, 2), self.node(target) if target else None, self._nodes(data, 3))

    def _map_literal(self, at: int, data: bytes) -> MapLiteral | None:
        """A map literal. None for a message literal, which is not supported."""
        pairs = ((self.node(_last_bytes(each, 3)), self.node(_last_bytes(each, 4))) for each in _all_bytes(data, 2))
        return None if _string(data, 1) else MapLiteral(at, tuple(pairs))

    def _comprehension(self, at: int, data: bytes) -> Comprehension:
        """Recognize the macro that a comprehension was expanded from, by its step expression.

        `map` and `filter` are rejected: they build lists, which this library duplicates in every iteration, and ten
        thousand items take 9 seconds.
        """
        step = self.node(_last_bytes(data, 6))
        macro, body_index = "", 0
        match step, self.node(_last_bytes(data, 4)):
            case Call(function="_&&_"), _:
                macro, body_index = "all", 1
            case Call(function="_||_"), _:
                macro, body_index = "exists", 1
            case Call(function="_?_:_"), Constant(value="0"):
                macro, body_index = "exists_one", 0
        if not macro or not isinstance(step, Call) or _string(data, 8):
            raise InvalidRule(LIST_MACROS_UNSUPPORTED, at + 1)
        return Comprehension(at, macro, self.node(_last_bytes(data, 2)), _string(data, 1), step.arguments[body_index])


_CONSTANT_FORMATS: dict[int, Callable[[Any], str]] = {
    2: lambda value: "true" if value else "false",
    3: lambda value: str(value - (1 << 64) if value >> 63 else value),
    4: lambda value: f"{value}u",
    5: lambda value: repr(struct.unpack("<d", value)[0]),
    6: lambda value: quote_string(value.decode()),
    7: lambda value: "b'" + "".join(f"\\x{each:02x}" for each in value) + "'",
}


def _constant_text(data: bytes) -> str:
    """Format a constant. Its field number determines the type."""
    field, value = next(_message_fields(data), (1, 0))
    return _CONSTANT_FORMATS[field](value) if field in _CONSTANT_FORMATS else "null"


def quote_string(text: str) -> str:
    """Quote a string as a CEL literal."""
    return "'" + "".join(map(_escaped_character, text)) + "'"


def _escaped_character(character: str) -> str:
    if character in "'\\":
        return f"\\{character}"
    return character if character.isprintable() else f"\\U{ord(character):08x}"


def _message_fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Fields of a protobuf message in order, as pairs of number and value."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        match key & 7:
            case 0:
                value, at = _varint(data, at)
                yield key >> 3, value
                continue
            case 1:
                size = 8
            case 2:
                size, at = _varint(data, at)
            case _:  # 5: fixed 32 bits. Groups, 3 and 4, do not occur in CEL.
                size = 4
        yield key >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Value of a varint, and the offset behind it."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _all_bytes(data: bytes, number: int) -> list[bytes]:
    return [value for field, value in _message_fields(data) if field == number and isinstance(value, bytes)]


def _last_bytes(data: bytes, number: int) -> bytes:
    return next(iter(reversed(_all_bytes(data, number))), b"")


def _string(data: bytes, number: int) -> str:
    return _last_bytes(data, number).decode()


def _first_number(data: bytes, number: int) -> int:
    return next((value for field, value in _message_fields(data) if field == number and isinstance(value, int)), 0)

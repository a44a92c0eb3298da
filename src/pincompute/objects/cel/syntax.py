"""What a rule says, part by part: read from the wire form in which the library hands out what it has read.

That is a `CheckedExpr` of cel/expr/checked.proto; it is read here by hand, as the library brings nothing that does.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

NO_WORDS = "policies have no word for this"
NO_LISTS = "policies may ask all, exists and exists_one of a list, and make none with map or filter"


class NotRead(ValueError):  # noqa: N818  (it reads as what happened)
    """What a rule may not say, and at which character of it, from one; 0 where that is not known."""

    def __init__(self, what: str, column: int = 0) -> None:
        super().__init__(what)
        self.column = column


class Const(NamedTuple):
    """A value that stands in the rule itself."""

    at: int
    value: str
    """As it is written there."""


class Name(NamedTuple):
    at: int
    name: str


class Field(NamedTuple):
    at: int
    of: Node
    name: str
    asked: bool
    """Whether it is there at all: `has(a.b)`."""


class Call(NamedTuple):
    """Operators are calls, too, with names such as `_&&_`."""

    at: int
    function: str
    target: Node | None
    arguments: tuple[Node, ...]


class Items(NamedTuple):
    at: int
    items: tuple[Node, ...]


class Entries(NamedTuple):
    at: int
    pairs: tuple[tuple[Node, Node], ...]


class Each(NamedTuple):
    """`over.all(name, part)`, or `exists`, or `exists_one`."""

    at: int
    macro: str
    over: Node
    name: str
    part: Node


Node = Const | Name | Field | Call | Items | Entries | Each


def parts(node: Node) -> tuple[Node, ...]:
    """What it is made of."""
    match node:
        case Const() | Name():
            return ()
        case Field(of=of):
            return (of,)
        case Call(target=target, arguments=arguments):
            return arguments if target is None else (target, *arguments)
        case Items(items=items):
            return items
        case Entries(pairs=pairs):
            return tuple(each for pair in pairs for each in pair)
        case Each(over=over, part=part):
            return (over, part)


def every(node: Node) -> Iterator[Node]:
    """It, and all that it is made of."""
    yield node
    for each in parts(node):
        yield from every(each)


def decode(checked: bytes) -> Node:
    """The rule that the library handed over."""
    whole = _last(_last(checked, 2), 4)
    source = _last(_last(checked, 2), 5)
    places = {_number(each, 1): _number(each, 2) for each in _all(source, 4)}
    return _Decoder(places).node(whole)


class _Decoder:
    def __init__(self, places: dict[int, int]) -> None:
        self._places = places
        self._makers: dict[int, Callable[[int, bytes], Node | None]] = {
            3: lambda at, data: Const(at, _constant(data)),
            4: lambda at, data: Name(at, _text(data, 1)),
            5: lambda at, data: Field(at, self.node(_last(data, 1)), _text(data, 2), bool(_number(data, 3))),
            6: self._call,
            7: lambda at, data: Items(at, self._nodes(data, 1)),
            8: self._entries,
            9: self._each,
        }

    def node(self, data: bytes) -> Node:
        at = self._places.get(_number(data, 2), 0)
        for field, value in _fields(data):
            if field in self._makers and isinstance(value, bytes) and (made := self._makers[field](at, value)):
                return made
        raise NotRead(NO_WORDS, at + 1)

    def _nodes(self, data: bytes, number: int) -> tuple[Node, ...]:
        return tuple(map(self.node, _all(data, number)))

    def _call(self, at: int, data: bytes) -> Call:
        target = _last(data, 1)
        return Call(at, _text(data, 2), self.node(target) if target else None, self._nodes(data, 3))

    def _entries(self, at: int, data: bytes) -> Entries | None:
        """Unless it is a message of somebody's own."""
        pairs = ((self.node(_last(each, 3)), self.node(_last(each, 4))) for each in _all(data, 2))
        return None if _text(data, 1) else Entries(at, tuple(pairs))

    def _each(self, at: int, data: bytes) -> Each:
        """The library has spelled out what a macro means: which one it was is told by how it goes on from item to item.

        The others make lists, and this library copies what it has for each item more: 9 s for ten thousand.
        """
        step = self.node(_last(data, 6))
        macro, part = "", 0
        match step, self.node(_last(data, 4)):
            case Call(function="_&&_"), _:
                macro, part = "all", 1
            case Call(function="_||_"), _:
                macro, part = "exists", 1
            case Call(function="_?_:_"), Const(value="0"):
                macro, part = "exists_one", 0
        if not macro or not isinstance(step, Call) or _text(data, 8):
            raise NotRead(NO_LISTS, at + 1)
        return Each(at, macro, self.node(_last(data, 2)), _text(data, 1), step.arguments[part])


_CONSTANTS: dict[int, Callable[[Any], str]] = {
    2: lambda value: "true" if value else "false",
    3: lambda value: str(value - (1 << 64) if value >> 63 else value),
    4: lambda value: f"{value}u",
    5: lambda value: repr(struct.unpack("<d", value)[0]),
    6: lambda value: quoted(value.decode()),
    7: lambda value: "b'" + "".join(f"\\x{each:02x}" for each in value) + "'",
}


def _constant(data: bytes) -> str:
    """The field says of which type it is."""
    field, value = next(_fields(data), (1, 0))
    return _CONSTANTS[field](value) if field in _CONSTANTS else "null"


def quoted(text: str) -> str:
    """A text as a rule has it."""
    return "'" + "".join(map(_escaped, text)) + "'"


def _escaped(letter: str) -> str:
    if letter in "'\\":
        return f"\\{letter}"
    return letter if letter.isprintable() else f"\\U{ord(letter):08x}"


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message, in the order in which they stand."""
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
            case _:
                size = 4
        yield key >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _all(data: bytes, number: int) -> list[bytes]:
    return [value for field, value in _fields(data) if field == number and isinstance(value, bytes)]


def _last(data: bytes, number: int) -> bytes:
    return next(iter(reversed(_all(data, number))), b"")


def _text(data: bytes, number: int) -> str:
    return _last(data, number).decode()


def _number(data: bytes, number: int) -> int:
    return next((value for field, value in _fields(data) if field == number and isinstance(value, int)), 0)

"""Protocol Buffers, as far as containerd's API needs them: messages are declared as tables of their fields.

The generated code of containerd's API, and the library that it needs, would be a hundred times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_VARINT_BITS = 70

Message: TypeAlias = dict[str, Any]
"""Values by field name. A field that is absent has the default value of its type."""


class Malformed(ValueError):  # noqa: N818  (named by what happened)
    """Bytes that are no message."""


class Field(NamedTuple):
    """One field: how its value is read, and whether there may be several."""

    name: str
    type: type[str | bytes | int] | Mapping[int, Field]
    """A mapping is a message within this one."""
    repeated: bool = False


Fields: TypeAlias = Mapping[int, Field]


def encode(fields: Fields, message: Mapping[str, Any]) -> bytes:
    """The message in bytes; unknown names are mistakes of the caller."""
    numbers = {field.name: number for number, field in fields.items()}
    parts: list[bytes] = []
    for name, value in message.items():
        number = numbers[name]
        field = fields[number]
        parts += (_encode_field(number, field, each) for each in (value if field.repeated else [value]))
    return b"".join(parts)


def decode(fields: Fields, data: bytes) -> Message:
    """The fields that are declared; all others are skipped, as newer versions may add some."""
    message: Message = {field.name: [] if field.repeated else _default(field) for field in fields.values()}
    for number, wire_type, raw in _raw_fields(data):
        field = fields.get(number)
        if field is None or (wire_type == _VARINT) != (field.type is int):
            continue
        value = _read(field, raw)
        if field.repeated:
            message[field.name].append(value)
        else:
            message[field.name] = value
    return message


def _encode_field(number: int, field: Field, value: Any) -> bytes:
    if field.type is int:
        return _varint(number << 3 | _VARINT) + _varint(int(value))
    if isinstance(field.type, Mapping):
        content = encode(field.type, value)
    else:
        content = value.encode() if isinstance(value, str) else bytes(value)
    return _varint(number << 3 | _BYTES) + _varint(len(content)) + content


def _read(field: Field, raw: int | bytes) -> Any:
    if isinstance(raw, int):
        return raw
    if isinstance(field.type, Mapping):
        return decode(field.type, raw)
    return raw.decode(errors="replace") if field.type is str else raw


def _default(field: Field) -> Any:
    constructor: Callable[[], Any] = dict if isinstance(field.type, Mapping) else field.type
    return constructor()


def _raw_fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    position = 0
    while position < len(data):
        key, position = _read_varint(data, position)
        number, wire_type = key >> 3, key & 7
        if wire_type == _VARINT:
            value, position = _read_varint(data, position)
            yield number, wire_type, value
            continue
        if wire_type == _BYTES:
            length, position = _read_varint(data, position)
        elif wire_type in (_FIXED64, _FIXED32):
            length = 8 if wire_type == _FIXED64 else 4
        else:
            raise Malformed(f"wire type {wire_type}")
        if position + length > len(data):
            raise Malformed("the message is cut off")
        yield number, wire_type, data[position : position + length]
        position += length


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while shift < _MAX_VARINT_BITS:
        if position >= len(data):
            raise Malformed("the message is cut off")
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position
    raise Malformed("a number has more than 64 bits")

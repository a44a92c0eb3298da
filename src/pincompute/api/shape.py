"""What is wrong with a value, by the type that it should have: every fault and not only the first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from enum import StrEnum
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from pincompute.api.noun import Fault, Path
from pincompute.api.wire import LOOKS, Open, fields_of

_NEAR = 0.8
"""How like a known field of Kubernetes an unknown one must be to be a slip: its next version may bring others."""

_GIVEN = frozenset({"environment", "configuration", "env"})
"""What a program is given may be a secret: it stands in no error, and so on no record."""

_WORDS = {
    "str": "a text",
    "int": "a number",
    "float": "a fraction",
    "bool": "true or false",
    "array": "a list",
    "object": "a set of fields",
    "null": "nothing",
    "int | str": "a number or a text",
    "object | null": "a set of fields",
}


def misfits(type_: Any, value: Any, path: Path) -> Iterator[Fault]:
    """Paths name the field; a fault within a field hides no other."""
    struct, item = struct_of(type_), item_of(type_)
    if struct and isinstance(value, dict):
        yield from _fields(struct, value, path)
        return
    inner: list[Fault] = []
    if item and isinstance(value, list):
        inner = [fault for index, each in enumerate(value) for fault in misfits(item, each, (*path, index))]
    elif item and isinstance(value, dict):
        inner = [fault for name, each in value.items() for fault in misfits(item, each, (*path, name))]
    yield from inner or _itself(type_, value, path)


def perhaps(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    near = get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return f"did you mean {near[0]}?" if near else ""


def unknown(value: dict[str, Any], known: Iterable[str], path: Path) -> Iterator[Fault]:
    for name in value:
        if name not in known:
            hint = perhaps(name, known)
            note = "" if hint else f"the fields here are {', '.join(known)}"
            yield Fault((*path, name), f"there is no field '{name}'", note, hint)


def _fields(struct: type, value: dict[str, Any], path: Path) -> Iterator[Fault]:
    known = {field.encode_name: field for field in fields_of(struct)}
    if issubclass(struct, Open):
        yield from _slips(value, known, path)
    else:
        yield from unknown(value, known, path)
    for name, field in known.items():
        if name in value:
            yield from misfits(field.type, value[name], (*path, name))
        elif field.required:
            yield Fault((*path, name), f"{name} is missing")


def _slips(value: dict[str, Any], known: Iterable[str], path: Path) -> Iterator[Fault]:
    """What nobody knows passes; what is nearly known was meant otherwise."""
    for name in value:
        hint = "" if name in known else perhaps(name, known, _NEAR)
        if hint:
            yield Fault((*path, name), f"there is no field '{name}'", next=hint)


def _itself(type_: Any, value: Any, path: Path) -> Iterator[Fault]:
    try:
        msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        said = str(error).partition(" - at `")[0]
        if _GIVEN.intersection(path):
            yield Fault(path, f"the value of {path[-1]} is wrong: {_in_words(said)}", next="write it in quotes")
            return
        choices = _choices(type_)
        if choices:
            yield Fault(
                path, f"{path[-1]} is {value!r}: expected {choices}", next=perhaps(str(value), choices.split(", "))
            )
            return
        quoted = "Expected `str`" in said and isinstance(value, int | float)
        text = str(value).lower() if isinstance(value, bool) else str(value)
        hint = f'write "{text}"' if quoted else ""
        yield Fault(path, f"{path[-1]} is {value!r}: {_in_words(said)}", next=hint)
        return
    yield from _pattern(type_, value, path)


def _in_words(said: str) -> str:
    """What msgspec says, as people say it."""
    for theirs, ours in _WORDS.items():
        said = said.replace(f"`{theirs}`", ours)
    return said[0].lower() + said[1:]


def _choices(type_: Any) -> str:
    type_ = plain_of(type_)
    if get_origin(type_) is Literal:
        return ", ".join(str(each) for each in get_args(type_))
    return ", ".join(type_) if isinstance(type_, type) and issubclass(type_, StrEnum) else ""


def _pattern(type_: Any, value: Any, path: Path) -> Iterator[Fault]:
    """What a number or a text must look like, where the type allows both, and to the very end of a text."""
    for each in getattr(type_, "__metadata__", ()):
        looks = (getattr(each, "extra_json_schema", None) or {}).get("pattern")
        if looks and not (value >= 0 if isinstance(value, int) else re.fullmatch(looks, value)):
            yield Fault(path, f"{path[-1]} is {value!r}: expected {LOOKS[looks]}")
        # A line break at the end is none to `$`.
        pattern = getattr(each, "pattern", None)
        if pattern and isinstance(value, str) and not re.fullmatch(pattern, value):
            yield Fault(path, f"{path[-1]} is {value!r}: there is a line break at its end")


def struct_of(type_: Any) -> type | None:
    """The struct that a value of this type is, `None` beside it or not."""
    type_ = plain_of(type_)
    options = [each for each in get_args(type_) if each is not type(None)] if _is_union(type_) else [type_]
    only = plain_of(options[0]) if len(options) == 1 else None
    return only if isinstance(only, type) and issubclass(only, msgspec.Struct) else None


def item_of(type_: Any) -> Any:
    """What a list or a mapping holds."""
    type_ = plain_of(type_)
    return get_args(type_)[-1] if get_origin(type_) in {list, dict} else None


def plain_of(type_: Any) -> Any:
    for each in getattr(type_, "__metadata__", ()):
        shape = (getattr(each, "extra", None) or {}).get("shape")
        if shape is not None:
            return shape
    return get_args(type_)[0] if get_origin(type_) is Annotated else type_


def bare(type_: Any) -> Any:
    """`list` of `Annotated[list[str], …]`."""
    type_ = plain_of(type_)
    return get_origin(type_) or type_


def _is_union(type_: Any) -> bool:
    return get_origin(type_) in {Union, UnionType}

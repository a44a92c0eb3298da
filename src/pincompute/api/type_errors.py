"""Compares a value with a type and reports every error, where msgspec stops at the first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from enum import StrEnum
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from pincompute.api.custom_resource import FieldError, FieldPath
from pincompute.api.structs import PATTERN_DESCRIPTIONS, OpenStruct, struct_fields

_TYPO_SIMILARITY = 0.8
"""How similar an unknown field must be to a known Kubernetes field to be reported as a typo.

Others pass: newer Kubernetes versions add fields.
"""

_MAX_SUGGESTIONS = 30
"""How many unknown names of one document are compared with the known ones: a comparison takes up to a millisecond."""
_MAX_TYPO_LENGTH = 64
"""Longer words get no suggestion: comparing takes time in proportion to their length, and names are shorter."""

_SECRET_FIELDS = frozenset({"environment", "configuration", "env"})
"""Fields with possibly secret values, which must not appear in messages or records."""

_PATTERN_MISMATCH = re.compile(r"Expected `str` matching regex '(.*)'$")
_TOO_MANY = re.compile(r"Expected `(?:array|object)` of length <= (\d+)$")
_EXPECTS_COLLECTION = re.compile("Expected `(array|object)`")
_GPU_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_SYNONYMS = {
    "accelerators": "gpus",
    "args": "arguments",
    "cmd": "command",
    "config": "configuration",
    "count": "replicas",
    "cron": "schedule",
    "env": "environment",
    "instances": "replicas",
    "volumes": "claims",
}
"""Words of Kubernetes and other platforms for fields of ours that are spelled differently."""
_WORDS = {
    "str": "a string",
    "int": "a number",
    "float": "a decimal number",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
    "int | str": "a number or a string",
    "object | null": "a mapping",
}


class Suggestions:
    """Suggests known names for the unknown names of one document, as long as their number is limited."""

    def __init__(self) -> None:
        self._left = _MAX_SUGGESTIONS

    def did_you_mean(self, word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
        if self._left == 0:
            return ""
        self._left -= 1
        return did_you_mean(word, known, cutoff)


def type_errors(
    type_: Any, value: Any, path: FieldPath, suggestions: Suggestions | None = None
) -> Iterator[FieldError]:
    """Errors of a value against a type, as they are found. An error in one field hides no other."""
    suggestions = suggestions or Suggestions()
    struct = struct_of(type_)
    if struct and isinstance(value, dict):
        yield from _struct_errors(struct, value, path, suggestions)
        return
    inner = _item_errors(item_of(type_), value, path, suggestions)
    first = next(inner, None)
    if first is None:
        yield from _value_errors(type_, value, path, suggestions)
    else:
        yield first
        yield from inner


def did_you_mean(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Suggestion of the most similar known word; empty if none is similar."""
    known = list(known)
    if _SYNONYMS.get(word) in known:
        return f"did you mean {_SYNONYMS[word]}?"
    matches = get_close_matches(word, known, n=1, cutoff=cutoff) if len(word) <= _MAX_TYPO_LENGTH else []
    return f"did you mean {matches[0]}?" if matches else ""


def unknown_field_errors(
    value: dict[str, Any], known: Iterable[str], path: FieldPath, suggestions: Suggestions | None = None
) -> Iterator[FieldError]:
    suggestions = suggestions or Suggestions()
    for name in value:
        if name not in known:
            hint = suggestions.did_you_mean(name, known)
            note = "" if hint else f"fields: {', '.join(known)}"
            yield FieldError((*path, name), f"unknown field '{name}'", note, hint)


def _item_errors(item: Any, value: Any, path: FieldPath, suggestions: Suggestions) -> Iterator[FieldError]:
    """Errors of the items of a list, or of the values of a mapping."""
    items: Iterable[tuple[Any, Any]] = ()
    if item and isinstance(value, dict):
        items = value.items()
    elif item and isinstance(value, list):
        items = enumerate(value)
    for key, each in items:
        yield from type_errors(item, each, (*path, key), suggestions)


def _struct_errors(
    struct: type, value: dict[str, Any], path: FieldPath, suggestions: Suggestions
) -> Iterator[FieldError]:
    known = {field.encode_name: field for field in struct_fields(struct)}
    if issubclass(struct, OpenStruct):
        yield from _typo_errors(value, known, path, suggestions)
    else:
        yield from unknown_field_errors(value, known, path, suggestions)
    for name, field in known.items():
        if name in value:
            yield from type_errors(field.type, value[name], (*path, name), suggestions)
        elif field.required:
            yield FieldError((*path, name), f"{name} is missing")


def _typo_errors(
    value: dict[str, Any], known: Iterable[str], path: FieldPath, suggestions: Suggestions
) -> Iterator[FieldError]:
    """Unknown Kubernetes fields are allowed unless they look like a typo."""
    for name in value:
        hint = "" if name in known else suggestions.did_you_mean(name, known, _TYPO_SIMILARITY)
        if hint:
            yield FieldError((*path, name), f"unknown field '{name}'", next=hint)


def _value_errors(type_: Any, value: Any, path: FieldPath, suggestions: Suggestions) -> Iterator[FieldError]:
    try:
        msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        message = str(error).partition(" - at `")[0]
        if _SECRET_FIELDS.intersection(path):
            yield FieldError(path, f"wrong type of {path[-1]}: {_translated(message)}", next="add quotes")
            return
        if (most := _TOO_MANY.match(message)) and isinstance(value, (dict, list)):
            yield FieldError(path, f"{path[-1]} has {len(value):,} entries, the maximum is {int(most[1]):,}")
            return
        choices = _choices(type_)
        if choices:
            hint = suggestions.did_you_mean(str(value), choices.split(", "))
            yield FieldError(path, f"{path[-1]} is {value!r}: expected {choices}", next=hint)
            return
        needs_quotes = "Expected `str`" in message and isinstance(value, int | float)
        text = str(value).lower() if isinstance(value, bool) else str(value)
        hint = f'write "{text}"' if needs_quotes else ""
        expected = _described_pattern(message) or _translated(message)
        # The shape of a list or mapping is not told by its type.
        note = _description(type_) if isinstance(value, (dict, list)) or _EXPECTS_COLLECTION.match(message) else ""
        yield FieldError(path, f"{path[-1]} is {value!r}: {expected}", note, _gpu_hint(path, value) or hint)
        return
    yield from _pattern_errors(type_, value, path)


def _gpu_hint(path: FieldPath, value: Any) -> str:
    """How to write `gpus: {a100: 8}`, as other platforms spell the type; empty for other values."""
    if path[-1] != "gpus" or not isinstance(value, dict) or len(value) != 1:
        return ""
    ((gpu_type, count),) = value.items()
    is_type = isinstance(gpu_type, str) and bool(_GPU_TYPE.fullmatch(gpu_type))
    return f"write gpus: {count}, and gpuType: {gpu_type}" if is_type and type(count) is int else ""


def _described_pattern(message: str) -> str:
    """Replace a regular expression by words, for the patterns that users meet most; empty for others."""
    found = _PATTERN_MISMATCH.match(message)
    if not found:
        return ""
    pattern = found[1]
    if pattern.startswith(("^/", "^(/")):
        return "must start with /" + (" and contain no :" if "[^:]" in pattern else "")
    if pattern.startswith("^[a-z]"):
        return "must start with a small letter, and contain only small letters, digits and dashes"
    return ""


def _description(type_: Any) -> str:
    """Description of the field, which has an example."""
    descriptions = (getattr(meta, "description", None) for meta in getattr(type_, "__metadata__", ()))
    return next(filter(None, descriptions), "")


def _translated(message: str) -> str:
    """Translate a message of msgspec."""
    for type_name, words in _WORDS.items():
        message = message.replace(f"`{type_name}`", words)
    return message[0].lower() + message[1:]


def _choices(type_: Any) -> str:
    type_ = unwrapped_type(type_)
    if get_origin(type_) is Literal:
        return ", ".join(str(each) for each in get_args(type_))
    return ", ".join(type_) if isinstance(type_, type) and issubclass(type_, StrEnum) else ""


def _pattern_errors(type_: Any, value: Any, path: FieldPath) -> Iterator[FieldError]:
    """Check patterns that msgspec does not: those of int-or-string fields, and line breaks at the end of a string."""
    for meta in getattr(type_, "__metadata__", ()):
        schema = getattr(meta, "extra_json_schema", None) or {}
        schema_pattern, max_length = schema.get("pattern"), schema.get("maxLength")
        if max_length and isinstance(value, str) and len(value) > max_length:
            yield FieldError(path, f"{path[-1]} has {len(value):,} characters, the maximum is {max_length}")
        elif schema_pattern and not (value >= 0 if isinstance(value, int) else re.fullmatch(schema_pattern, value)):
            yield FieldError(path, f"{path[-1]} is {value!r}: expected {PATTERN_DESCRIPTIONS[schema_pattern]}")
        # msgspec has checked the pattern with `$`, which also matches before a final line break.
        pattern = getattr(meta, "pattern", None)
        if pattern and isinstance(value, str) and not re.fullmatch(pattern, value):
            yield FieldError(path, f"{path[-1]} is {value!r}: remove the line break at the end")


def struct_of(type_: Any) -> type | None:
    """Struct type of `S` or `S | None`; None for other types."""
    type_ = unwrapped_type(type_)
    options = [each for each in get_args(type_) if each is not type(None)] if _is_union(type_) else [type_]
    only = unwrapped_type(options[0]) if len(options) == 1 else None
    return only if isinstance(only, type) and issubclass(only, msgspec.Struct) else None


def item_of(type_: Any) -> Any:
    """Item type of a list, or value type of a mapping."""
    type_ = unwrapped_type(type_)
    return get_args(type_)[-1] if get_origin(type_) in {list, dict} else None


def unwrapped_type(type_: Any) -> Any:
    """Type without Annotated; for an embedded Kubernetes object the struct that describes it."""
    for meta in getattr(type_, "__metadata__", ()):
        shape = (getattr(meta, "extra", None) or {}).get("shape")
        if shape is not None:
            return shape
    return get_args(type_)[0] if get_origin(type_) is Annotated else type_


def container_type(type_: Any) -> Any:
    """Container type without its arguments: `list` of `Annotated[list[str], …]`."""
    type_ = unwrapped_type(type_)
    return get_origin(type_) or type_


def _is_union(type_: Any) -> bool:
    return get_origin(type_) in {Union, UnionType}

"""Differences between two objects, with readable paths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from pincompute.objects.content import Object

_MAX_LENGTH = 60


class FieldDifference(NamedTuple):
    path: str
    before: Any = None
    """None if the field was absent."""
    after: Any = None


_MERGE_KEYS = ("name", "mountPath", "containerPort", "port", "key", "type")
"""Candidates for the merge key of a list: the first that is unique in all entries is used."""


def field_differences(before: Object, after: Object) -> Iterator[FieldDifference]:
    """Fields that `after` sets to another value.

    Fields that only `before` has are not reported: they belong to others or are defaults of the server. Entries of a
    keyed list in `after` are compared completely, so that a removed entry is reported.
    """
    yield from _value_differences(before, after, "")


def short_text(value: Any) -> str:
    """Format a value for display: None is empty, and long values are cut."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = " ".join(text.split())
    return text if len(text) <= _MAX_LENGTH else text[: _MAX_LENGTH - 1] + "…"


def _value_differences(before: Any, after: Any, path: str) -> Iterator[FieldDifference]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in after:
            yield from _value_differences(before.get(name), after[name], f"{path}.{name}" if path else name)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _entry_differences(before, after, path)
    elif before != after and not _both_empty(before, after):
        yield FieldDifference(path, before, after)


def _entry_differences(before: list[Any], after: list[Any], path: str) -> Iterator[FieldDifference]:
    key = next((each for each in _MERGE_KEYS if _is_unique_key(before, each) and _is_unique_key(after, each)), "")
    if not key:
        if before != after:
            yield FieldDifference(path, before, after)
        return
    old, new = ({each[key]: each for each in entries} for entries in (before, after))
    for name, entry in new.items():
        if name in old:
            yield from _value_differences(old[name], entry, f"{path}.{name}")
        else:
            yield FieldDifference(f"{path}.{name}", None, entry)
    for name, entry in old.items():
        if name not in new:
            yield FieldDifference(f"{path}.{name}", entry, None)


def _is_unique_key(entries: list[Any], key: str) -> bool:
    keys = [each.get(key) if isinstance(each, dict) else None for each in entries]
    return None not in keys and len(set(keys)) == len(keys)


def _both_empty(before: Any, after: Any) -> bool:
    """Kubernetes does not store empty fields."""
    return before is None and after in ("", 0, False, [], {})

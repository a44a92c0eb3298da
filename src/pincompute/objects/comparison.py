"""Where two objects differ: paths that a person can read, with what was and what would be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from pincompute.objects.content import Object

_LONGEST = 60


class Change(NamedTuple):
    path: str
    before: Any = None
    """None where it was not there."""
    after: Any = None


_KEYS = ("name", "mountPath", "containerPort", "port", "key", "type")
"""By which of these the entries of a list are told apart, where all have it."""


def changes(before: Object, after: Object) -> Iterator[Change]:
    """What `after` says otherwise. What only `before` says is somebody else's, or a default of the server; an entry
    of a list that `after` gives whole is gone, however."""
    yield from _fields(before, after, "")


def shortened(value: Any) -> str:
    """Nothing is shown as nothing, and what is long is cut."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _fields(before: Any, after: Any, path: str) -> Iterator[Change]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in after:
            yield from _fields(before.get(name), after[name], f"{path}.{name}" if path else name)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _entries(before, after, path)
    elif before != after and not _empty(before, after):
        yield Change(path, before, after)


def _entries(before: list[Any], after: list[Any], path: str) -> Iterator[Change]:
    key = next((each for each in _KEYS if _told_apart(before, each) and _told_apart(after, each)), "")
    if not key:
        if before != after:
            yield Change(path, before, after)
        return
    old, new = ({each[key]: each for each in entries} for entries in (before, after))
    for name, entry in new.items():
        if name in old:
            yield from _fields(old[name], entry, f"{path}.{name}")
        else:
            yield Change(f"{path}.{name}", None, entry)
    for name, entry in old.items():
        if name not in new:
            yield Change(f"{path}.{name}", entry, None)


def _told_apart(entries: list[Any], key: str) -> bool:
    keys = [each.get(key) if isinstance(each, dict) else None for each in entries]
    return None not in keys and len(set(keys)) == len(keys)


def _empty(before: Any, after: Any) -> bool:
    """A field that says nothing is not kept by Kubernetes."""
    return before is None and after in ("", 0, False, [], {})

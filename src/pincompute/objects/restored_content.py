"""Undoes foreign edits in a copy of an object, so that a single write restores it.

An apply alone cannot undo every edit, because it merges lists by key: beside a port whose protocol was edited it would
add ours, of the same name, which is invalid. Removing the edited port first may be as invalid: a Service needs one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any

import msgspec

from pincompute.objects.content import Object, pointer_step
from pincompute.objects.field_managers import entry_index, is_leaf, merged_fields

_NOT_RESTORED = frozenset({"apiVersion", "kind", "metadata", "status"})
"""Metadata is restored by the apply that follows. It has no lists whose entries depend on each other."""


def restoring_patch(found: Object, wanted: Object, added: Sequence[str]) -> list[Object]:
    """JSON patch that removes the fields at the pointers in `added`, and sets all that is wanted."""
    restored = restored_content(found, wanted, added)
    names = sorted((found.keys() | restored.keys()) - _NOT_RESTORED)
    changed = [name for name in names if name not in restored or found.get(name) != restored[name]]
    return [
        {"op": "test", "path": "/metadata/resourceVersion", "value": found["metadata"]["resourceVersion"]},
        *(
            {"op": "add", "path": pointer_step(name), "value": restored[name]}
            if name in restored
            else {"op": "remove", "path": pointer_step(name)}
            for name in changed
        ),
    ]


def restored_content(found: Object, wanted: Object, added: Sequence[str]) -> Object:
    """The object without the fields at the pointers in `added`, and with all that is wanted; others' fields stay."""
    kept = deepcopy(found)
    # From the end of each list to its start, so that no removal shifts the index of a later one.
    for pointer in sorted(added, key=_pointer_sort_key, reverse=True):
        _remove_at(kept, pointer)
    fields: Object = {}
    for entry in found["metadata"].get("managedFields", ()):
        if not entry.get("subresource"):
            fields = merged_fields(fields, entry["fieldsV1"])
    content: Object = _restored(kept, wanted, fields)
    return content


def _pointer_sort_key(pointer: str) -> list[tuple[int, str]]:
    """Orders list indexes as numbers."""
    return [(int(step), "") if step.isdigit() else (0, step) for step in pointer.split("/")]


def _remove_at(content: Any, pointer: str) -> None:
    *parents, last = (step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])
    for step in parents:
        content = content[int(step) if isinstance(content, list) else step]
    del content[int(last) if isinstance(content, list) else last]


def _restored(found: Any, wanted: Any, fields: Object | None) -> Any:
    """`fields` are the recorded fields below this place, of all managers; None if none is recorded."""
    if fields is not None and is_leaf(fields):
        return wanted
    if isinstance(found, dict) and isinstance(wanted, dict):
        below = fields or {}
        return found | {
            name: _restored(found[name], value, below.get(f"f:{name}")) if name in found else value
            for name, value in wanted.items()
        }
    if isinstance(found, list) and isinstance(wanted, list):
        return _restored_list(found, wanted, fields or {})
    return wanted


def _restored_list(found: Sequence[Any], wanted: Sequence[Any], fields: Object) -> list[Any]:
    """The wanted entries in their order, and then those of others; a list that is recorded as a whole is replaced."""
    records = [(name[0], msgspec.json.decode(name[2:]), below) for name, below in fields.items() if name[1:2] == ":"]
    if not records:
        return list(wanted)
    key_fields = next((tuple(key) for prefix, key, _ in records if prefix == "k"), ())
    matched: set[int] = set()
    entries: list[Any] = []
    for entry in wanted:
        prefix, key, below = _record_of(entry, records) or (
            "k" if key_fields else "v",
            _key_of(entry, key_fields),
            None,
        )
        index = entry_index(found, prefix, key)
        if index is None:
            entries.append(entry)
        else:
            matched.add(index)
            entries.append(_restored(found[index], entry, below))
    return [*entries, *(entry for index, entry in enumerate(found) if index not in matched)]


def _record_of(entry: Any, records: Iterable[tuple[str, Any, Object]]) -> tuple[str, Any, Object] | None:
    return next((each for each in records if entry_index([entry], each[0], each[1]) is not None), None)


def _key_of(entry: Any, key_fields: Sequence[str]) -> Any:
    return {name: entry[name] for name in key_fields if name in entry} if key_fields else entry

"""Detects fields that other managers have changed, from the server's managedFields record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from pincompute.objects.content import Object, pointer_step

KUBERNETES_MANAGERS = frozenset(
    {"kube-controller-manager", "kube-scheduler", "kubelet", "kube-apiserver", "cloud-controller-manager"}
)
"""Managers that are part of Kubernetes. Their writes are expected."""
_BOOKKEEPING = ("apiVersion", "kind", "status")
_IDENTITY = ("name", "namespace", "uid")


class ForeignEdit(NamedTuple):
    """A field that another manager has set to another value than the wanted one."""

    path: str
    before: Any
    """Current value; None if the field was removed."""
    wanted: Any
    """None if the field should not exist."""
    manager: str
    """Empty if unknown: removing a field leaves no entry in managedFields."""
    pointer: str = ""
    """JSON pointer of the field, for fields that must be removed with a JSON patch."""


def foreign_edits(found: Object, wanted: Object, ours: str, trusted: frozenset[str]) -> list[ForeignEdit]:
    """Fields below our wanted content that other managers have changed, added or removed."""
    entries = [each for each in found["metadata"].get("managedFields", ()) if each.get("subresource") != "status"]
    own = [each["fieldsV1"] for each in entries if each["manager"] == ours]
    recorded = own + [each["fieldsV1"] for each in entries if each["manager"] != ours and each["manager"] in trusted]
    changed = [
        edit
        for entry in entries
        if entry["manager"] != ours and entry["manager"] not in trusted
        for edit in _changed_fields(entry["fieldsV1"], _Location(found, wanted, entry["manager"]))
    ]
    reported = tuple({each.path for each in changed})
    removed = [each for each in _removed_fields(recorded, found, wanted, "") if not each.path.startswith(reported)]
    return [*changed, *removed]


def adopted_managed_fields(entries: Sequence[Object], ours: str, trusted: frozenset[str]) -> list[Object]:
    """managedFields of an adopted object, in which the fields of former managers are ours.

    Without this, apply could neither change nor remove them. Labels and annotations of others stay theirs, as on
    objects that we created.
    """
    adopted: list[Object] = []
    fields: Object = {}
    last: Object = {}
    for entry in entries:
        if entry.get("subresource") or entry["manager"] in trusted:
            adopted.append(entry)
            continue
        last, written = entry, entry["fieldsV1"]
        metadata: Object = {} if entry["manager"] == ours else {"f:metadata": written.get("f:metadata", {})}
        if metadata.get("f:metadata"):
            adopted.append({**entry, "fieldsV1": metadata})
        fields = merged_fields(fields, {name: below for name, below in written.items() if name not in metadata})
    return [*adopted, {**last, "manager": ours, "operation": "Apply", "fieldsV1": fields}] if fields else adopted


def merged_fields(first: Object, second: Object) -> Object:
    """Union of two field sets in the form of `fieldsV1`."""
    return {**first, **{name: merged_fields(first.get(name, {}), below) for name, below in second.items()}}


class _Location(NamedTuple):
    """A place in both objects, found and wanted."""

    found: Any
    wanted: Any
    manager: str
    path: str = ""
    pointer: str = ""

    def child(self, name: str, key: str | int, found: Any, wanted: Any) -> _Location:
        path, pointer = f"{self.path}.{name}".strip("."), f"{self.pointer}{pointer_step(key)}"
        return _Location(found, wanted, self.manager, path, pointer)


def _changed_fields(fields: Object, location: _Location) -> Iterator[ForeignEdit]:
    """Fields that another manager has set to another value than the wanted one."""
    for name, below in fields.items():
        child = _child_location(name, location)
        if child is None or child.path in _BOOKKEEPING:
            continue
        if child.wanted is None:
            # Additional metadata is allowed, such as annotations of other controllers. Additional fields of the spec
            # are not: they change what runs.
            if child.path == "metadata" or child.path.startswith("metadata."):
                continue
            is_whole = not below or "." in below
            if is_whole:
                yield ForeignEdit(child.path, child.found, None, child.manager, child.pointer)
            else:
                yield from _changed_fields(below, child)
        elif is_leaf(below):
            if child.found != child.wanted:
                yield ForeignEdit(child.path, child.found, child.wanted, child.manager)
        else:
            yield from _changed_fields(below, child)


def _child_location(name: str, location: _Location) -> _Location | None:
    """Descend to the field that the field set calls `f:image` or `k:{"name":"web"}`; None if it does not exist."""
    prefix, _, rest = name.partition(":")
    found, wanted = location.found, location.wanted
    if prefix == "f" and isinstance(found, dict) and rest in found:
        return location.child(rest, rest, found[rest], wanted.get(rest) if isinstance(wanted, dict) else None)
    if prefix in {"k", "v"} and isinstance(found, list):
        key = msgspec.json.decode(rest)
        index = entry_index(found, prefix, key)
        if index is not None:
            entries = wanted if isinstance(wanted, list) else []
            wanted_index = entry_index(entries, prefix, key)
            label = str(next(iter(key.values()))) if prefix == "k" else str(key)
            return location.child(label, index, found[index], None if wanted_index is None else entries[wanted_index])
    return None


def entry_index(entries: Sequence[Any], prefix: str, key: Any) -> int | None:
    """Index of a list entry by its key (`k:`) or value (`v:`).

    A key field that the entry leaves out has its default, such as the protocol of a port.
    """
    for index, entry in enumerate(entries):
        if prefix == "v" and entry == key:
            return index
        if (
            prefix == "k"
            and isinstance(entry, dict)
            and all(entry.get(name, value) == value for name, value in key.items())
        ):
            return index
    return None


def is_leaf(fields: Object) -> bool:
    """True for a field that is recorded as a whole."""
    return not fields.keys() - {"."}


def _removed_fields(recorded: list[Object], found: Any, wanted: Any, path: str) -> Iterator[ForeignEdit]:
    """Wanted fields for which neither we nor a trusted manager are recorded: another manager has removed them."""
    if isinstance(wanted, dict):
        for name, value in wanted.items():
            # Kubernetes does not store empty fields, so no manager is recorded for them.
            if not value or (not path and name in _BOOKKEEPING) or (path == "metadata" and name in _IDENTITY):
                continue
            below = [each[f"f:{name}"] for each in recorded if f"f:{name}" in each]
            found_value = found.get(name) if isinstance(found, dict) else None
            yield from _removed_below(below, found_value, value, f"{path}.{name}".strip("."))
    elif isinstance(wanted, list):
        for value in wanted:
            sets = [(key, below) for each in recorded for key, below in each.items() if key[:2] in {"k:", "v:"}]
            if not sets:
                # An atomic list, recorded as a whole.
                return
            keys = [msgspec.json.decode(key[2:]) for key, _ in sets]
            matching = [
                index for index, key in enumerate(keys) if entry_index([value], sets[index][0][0], key) is not None
            ]
            found_index = entry_index(found or (), sets[matching[0]][0][0], keys[matching[0]]) if matching else None
            label = str(value.get("name", "")) if isinstance(value, dict) else str(value)
            below = [sets[index][1] for index in matching]
            found_value = None if found_index is None else found[found_index]
            yield from _removed_below(below, found_value, value, f"{path}.{label}".strip("."))


def _removed_below(recorded: list[Object], found: Any, wanted: Any, path: str) -> Iterator[ForeignEdit]:
    if any(is_leaf(each) for each in recorded):
        return
    if recorded or (isinstance(wanted, dict) and isinstance(found, dict)):
        yield from _removed_fields(recorded, found, wanted, path)
    elif found != wanted:
        yield ForeignEdit(path, found, wanted, "")

"""JSON merge patch, JSON patch and the merge of server-side apply, as pure functions over objects."""

from __future__ import annotations

from typing import Any

from pincompute.objects.content import Object
from simulation.field_paths import FieldPath, ListSchema, item_path


def merge_patch(before: Any, patch: Any) -> Any:
    """RFC 7386: null removes a field, and a list is replaced as a result."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(before) if isinstance(before, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


class PatchTestFailed(Exception):  # noqa: N818
    """A `test` operation of a JSON patch does not hold."""

    __test__ = False


def json_patch(before: Object, patch: list[Object]) -> Object:
    """The operations of RFC 6902 that our client sends. Modifies `before` in key."""
    for operation in patch:
        *parents, last = [each.replace("~1", "/").replace("~0", "~") for each in operation["path"].split("/")[1:]]
        at: Any = before
        for name in parents:
            at = at[int(name)] if isinstance(at, list) else at.get(name, {})
        key: Any = (int(last) if last != "-" else len(at)) if isinstance(at, list) else last
        match operation["op"]:
            case "test":
                in_list = at[key] if isinstance(at, list) and key < len(at) else None
                if (at.get(key) if isinstance(at, dict) else in_list) != operation.get("value"):
                    raise PatchTestFailed(operation["path"])
            case "remove":
                del at[key]
            case "add" if isinstance(at, list):
                at.insert(key, operation["value"])
            case _:
                at[key] = operation["value"]
    return before


def merge_applied(schema: ListSchema, live: Any, applied: Any, path: FieldPath = ()) -> Any:
    """The live object with the applied fields in place of its own. Removing fields is a separate step."""
    if isinstance(live, dict) and isinstance(applied, dict) and not (path and schema.is_atomic(path)):
        result = dict(live)
        for name, value in applied.items():
            result[name] = merge_applied(schema, live[name], value, (*path, f"f:{name}")) if name in live else value
        return result
    if isinstance(live, list) and isinstance(applied, list):
        if path == ("f:metadata", "f:finalizers"):
            return [*live, *(each for each in applied if each not in live)]
        if keys := schema.item_keys(path):
            return _merged_items(schema, live, applied, path, keys)
    return applied


def _merged_items(
    schema: ListSchema, live: list[Object], applied: list[Object], path: FieldPath, keys: tuple[str, ...]
) -> list[Object]:
    """Merges lists of named items, in the applied order. Items that only the live list has keep their position."""
    live_items = {item_path(keys, each): each for each in live}
    applied_items = {item_path(keys, each): each for each in applied}
    found: dict[str, Object] = {}
    remaining = list(live_items)
    for name, each in applied_items.items():
        while remaining and remaining[0] not in applied_items:
            first = remaining.pop(0)
            found[first] = live_items[first]
        if name in remaining:
            remaining.remove(name)
        before = live_items.get(name)
        found[name] = each if before is None else merge_applied(schema, before, each, (*path, name))
    found.update((name, live_items[name]) for name in remaining)
    return list(found.values())


def remove_paths(schema: ListSchema, result: Object, removed: set[FieldPath]) -> Object:
    """The object without these paths and everything below them. An object that loses all its fields becomes null."""
    remaining = _remove_paths(schema, result, removed, ())
    assert isinstance(remaining, dict)
    return remaining


def _remove_paths(schema: ListSchema, value: Any, removed: set[FieldPath], path: FieldPath) -> Any:
    if isinstance(value, dict):
        remaining = {}
        for name, each in value.items():
            item = (*path, f"f:{name}")
            if item not in removed:
                remaining[name] = _remove_paths(schema, each, removed, item)
        return remaining if remaining or not value else None
    if isinstance(value, list) and path:
        if path == ("f:metadata", "f:finalizers"):
            return [each for each in value if (*path, f'v:"{each}"') not in removed]
        if keys := schema.item_keys(path):
            named = [((*path, item_path(keys, each)), each) for each in value]
            return [_remove_paths(schema, each, removed, item) for item, each in named if item not in removed]
    return value

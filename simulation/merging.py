"""What becomes of an object when somebody sends a change: the three ways of Kubernetes, as pure functions."""

from __future__ import annotations

from typing import Any

from pincompute.objects.content import Object
from simulation.fields import Path, Shape, item


def merge_patch(before: Any, patch: Any) -> Any:
    """RFC 7386: null removes, a list is one value."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(before) if isinstance(before, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


class TestFailed(Exception):  # noqa: N818
    """The object is not as a `test` of a patch wants it."""

    __test__ = False


def json_patch(before: Object, patch: list[Object]) -> Object:
    """RFC 6902, as far as anybody here speaks it; `before` is a copy that may be changed."""
    for step in patch:
        *way, last = [each.replace("~1", "/").replace("~0", "~") for each in step["path"].split("/")[1:]]
        at: Any = before
        for name in way:
            at = at[int(name)] if isinstance(at, list) else at.get(name, {})
        place: Any = (int(last) if last != "-" else len(at)) if isinstance(at, list) else last
        match step["op"]:
            case "test":
                there = at[place] if isinstance(at, list) and place < len(at) else None
                if (at.get(place) if isinstance(at, dict) else there) != step.get("value"):
                    raise TestFailed(step["path"])
            case "remove":
                del at[place]
            case "add" if isinstance(at, list):
                at.insert(place, step["value"])
            case _:
                at[place] = step["value"]
    return before


def merged(shape: Shape, live: Any, said: Any, path: Path = ()) -> Any:
    """What is there, with what is said in its place; nobody says what is to go away."""
    if isinstance(live, dict) and isinstance(said, dict) and not (path and shape.whole(path)):
        whole = dict(live)
        for name, value in said.items():
            whole[name] = merged(shape, live[name], value, (*path, f"f:{name}")) if name in live else value
        return whole
    if isinstance(live, list) and isinstance(said, list):
        if path == ("f:metadata", "f:finalizers"):
            return [*live, *(each for each in said if each not in live)]
        if keys := shape.keys(path):
            return _merged_items(shape, live, said, path, keys)
    return said


def _merged_items(
    shape: Shape, live: list[Object], said: list[Object], path: Path, keys: tuple[str, ...]
) -> list[Object]:
    """In the order in which they are said; what only was there keeps its place between them."""
    there = {item(keys, each): each for each in live}
    told = {item(keys, each): each for each in said}
    found: dict[str, Object] = {}
    left = list(there)
    for name, each in told.items():
        while left and left[0] not in told:
            first = left.pop(0)
            found[first] = there[first]
        if name in left:
            left.remove(name)
        before = there.get(name)
        found[name] = each if before is None else merged(shape, before, each, (*path, name))
    found.update((name, there[name]) for name in left)
    return list(found.values())


def without(shape: Shape, whole: Object, gone: set[Path]) -> Object:
    """Without the values at these paths, and all below them. An object that loses all it has is null."""
    left = _without(shape, whole, gone, ())
    assert isinstance(left, dict)
    return left


def _without(shape: Shape, value: Any, gone: set[Path], path: Path) -> Any:
    if isinstance(value, dict):
        left = {}
        for name, each in value.items():
            this = (*path, f"f:{name}")
            if this not in gone:
                left[name] = _without(shape, each, gone, this)
        return left if left or not value else None
    if isinstance(value, list) and path:
        if path == ("f:metadata", "f:finalizers"):
            return [each for each in value if (*path, f'v:"{each}"') not in gone]
        if keys := shape.keys(path):
            named = [((*path, item(keys, each)), each) for each in value]
            return [_without(shape, each, gone, this) for this, each in named if this not in gone]
    return value

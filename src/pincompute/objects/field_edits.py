"""Edits of single fields of a document by their paths, such as `template.spec.nodeSelector[pool]`.

Dots separate fields. Brackets enclose a key of a mapping that may have dots of its own, such as that of a label, or
name an item of a list by its `name`, `key` or `topologyKey`, as containers, volumes and tolerations have one, or
by its position, from 0.
"""

from __future__ import annotations

import copy
import re
from itertools import pairwise
from typing import Any

from pincompute.objects.content import Object

MAX_PATH_CHARS = 512
_STEP = re.compile(r"(?:^|\.)([A-Za-z][\w-]*)|\[([^\[\]]+)\]")
_LISTS = {
    "containers": "name", "initContainers": "name", "volumes": "name", "env": "name", "volumeMounts": "name",
    "ports": "name", "tolerations": "key", "topologySpreadConstraints": "topologyKey",
}  # fmt: skip
"""Lists whose items have a name, with the field that it is in: an item is named also where the list does not exist."""


class FieldPathError(ValueError):
    """A path that cannot be read, or that leads nowhere; the text tells which."""


def parse_path(text: str) -> tuple[str, ...]:
    """The steps of a path. The `spec.` that paths in messages begin with may be written or left out."""
    steps: list[str] = []
    end = 0
    while end < len(text):
        found = _STEP.match(text, end)
        if found is None or (found[2] and not steps):
            break
        steps.append(found[1] or found[2])
        end = found.end()
    if end < len(text) or not steps or len(text) > MAX_PATH_CHARS:
        raise FieldPathError(f"'{text[:MAX_PATH_CHARS]}' is no path of a field")
    return tuple(steps[1:] if steps[0] == "spec" and len(steps) > 1 else steps)


def field_path(*steps: str) -> str:
    """The path of these steps, in brackets where a step is the name of an item, or no plain field name."""
    text = steps[0]
    for before, step in pairwise(steps):
        text += f".{step}" if before not in _LISTS and re.fullmatch(r"[A-Za-z]\w*", step) else f"[{step}]"
    return text


def with_field(content: Object, path: str, value: Any) -> Object:
    """The content with the field; mappings and items of lists on the way to it are added."""
    edited: Object = copy.deepcopy(content)
    *parents, last = parse_path(path)
    place: Any = edited
    before = ""
    for step in parents:
        place = _entered(place, step, before)
        before = step
    if isinstance(place, list):
        _require_item(place, last)
        raise FieldPathError(f"{path} is an item of a list: name a field of it")
    _require_mapping(place, last)[last] = value
    return edited


def without_field(content: Object, path: str) -> Object:
    """The content without the field, and without mappings and lists that this empties."""
    return _removed(copy.deepcopy(content), parse_path(path), path)


def _entered(place: Any, step: str, name: str) -> Any:
    if isinstance(place, list):
        found = _item(place, step)
        if found is None:
            found = {_LISTS.get(name, "name"): step}
            place.append(found)
        return found
    default: Any = [] if step in _LISTS else {}
    mapping = _require_mapping(place, step)
    if mapping.get(step) is None:
        mapping[step] = default
    return mapping[step]


def _removed(content: Any, steps: tuple[str, ...], path: str) -> Any:
    step, *others = steps
    if isinstance(content, list):
        item = _item(content, step)
        if item is None:
            raise FieldPathError(f"there is no {path}")
        kept = _removed(item, tuple(others), path) if others else None
        return [kept if each is item else each for each in content if each is not item or kept]
    if not isinstance(content, dict) or step not in content:
        raise FieldPathError(f"there is no {path}")
    kept = _removed(content[step], tuple(others), path) if others else None
    return {key: kept if key == step else value for key, value in content.items() if key != step or kept}


def _item(items: list[Any], name: str) -> Any:
    named = [each for each in items if isinstance(each, dict) and name in map(each.get, _LISTS.values())]
    numbered = items[int(name) : int(name) + 1] if name.isdecimal() and name.isascii() and len(name) < 5 else []
    return next(iter([*named, *numbered]), None)


def _require_item(items: list[Any], name: str) -> None:
    if _item(items, name) is None:
        raise FieldPathError(f"no item of the list is named {name}")


def _require_mapping(place: Any, step: str) -> Object:
    if not isinstance(place, dict):
        raise FieldPathError(f"{step} cannot be a field of {place!r:.40}")
    return place

"""Who wrote which fields of an object, by the server's own record, and which of those are wanted otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from pincompute.objects.content import Object, pointed

KUBERNETES = frozenset(
    {"kube-controller-manager", "kube-scheduler", "kubelet", "kube-apiserver", "cloud-controller-manager"}
)
"""What these write into an object is how Kubernetes works."""
_BOOKKEEPING = ("apiVersion", "kind", "status")
_IDENTITY = ("name", "namespace", "uid")


class Edit(NamedTuple):
    """A field that somebody has written, and that is wanted otherwise."""

    path: str
    before: Any
    """As it was found; nothing where it was taken away."""
    wanted: Any
    """Nothing where it is not wanted at all."""
    manager: str
    """Empty where the record does not say: who takes a field away leaves no name."""
    pointer: str = ""
    """Where it lies, for what only its removal undoes."""


def edits(found: Object, wanted: Object, ours: str, friends: frozenset[str]) -> list[Edit]:
    """Everything that somebody else has written, added or taken away, below what we want."""
    entries = [each for each in found["metadata"].get("managedFields", ()) if each.get("subresource") != "status"]
    mine = [each["fieldsV1"] for each in entries if each["manager"] == ours]
    theirs = [each for each in entries if each["manager"] != ours]
    known = mine + [each["fieldsV1"] for each in theirs if each["manager"] in friends]
    written = [
        edit
        for each in theirs
        if each["manager"] not in friends
        for edit in _written(each["fieldsV1"], _Place(found, wanted, each["manager"]))
    ]
    told = {each.path for each in written}
    missing = [each for each in _missing(known, found, wanted, "") if not each.path.startswith(tuple(told))]
    return [*written, *missing]


def inherited(entries: Sequence[Object], ours: str, friends: frozenset[str]) -> list[Object]:
    """The record of an object that has become ours: what others wrote is ours to change and to take away.

    Labels and annotations of theirs stay theirs, as they do on whatever we made ourselves.
    """
    kept: list[Object] = []
    fields: Object = {}
    last: Object = {}
    for each in entries:
        if each.get("subresource") or each["manager"] in friends:
            kept.append(each)
            continue
        last, written = each, each["fieldsV1"]
        metadata: Object = {} if each["manager"] == ours else {"f:metadata": written.get("f:metadata", {})}
        if metadata.get("f:metadata"):
            kept.append({**each, "fieldsV1": metadata})
        fields = _together(fields, {name: below for name, below in written.items() if name not in metadata})
    return [*kept, {**last, "manager": ours, "operation": "Apply", "fieldsV1": fields}] if fields else kept


def _together(first: Object, second: Object) -> Object:
    return {**first, **{name: _together(first.get(name, {}), below) for name, below in second.items()}}


class _Place(NamedTuple):
    found: Any
    wanted: Any
    manager: str
    path: str = ""
    pointer: str = ""

    def below(self, name: str, key: str | int, found: Any, wanted: Any) -> _Place:
        return _Place(found, wanted, self.manager, f"{self.path}.{name}".strip("."), f"{self.pointer}{pointed(key)}")


def _written(fields: Object, place: _Place) -> Iterator[Edit]:
    for name, below in fields.items():
        step = _step(name, place)
        if step is None or step.path in _BOOKKEEPING:
            continue
        whole = not below or "." in below
        if step.wanted is None:
            # What others write beside what we want is their business; what they add to what runs is not.
            if step.path == "metadata" or step.path.startswith("metadata."):
                continue
            if whole:
                yield Edit(step.path, step.found, None, step.manager, step.pointer)
            else:
                yield from _written(below, step)
        elif _is_leaf(below):
            if step.found != step.wanted:
                yield Edit(step.path, step.found, step.wanted, step.manager)
        else:
            yield from _written(below, step)


def _step(name: str, place: _Place) -> _Place | None:
    """What the field set calls `f:image` or `k:{"name":"web"}`, in both objects; nothing where it is not there."""
    kind, _, rest = name.partition(":")
    if kind == "f" and isinstance(place.found, dict) and rest in place.found:
        wanted = place.wanted.get(rest) if isinstance(place.wanted, dict) else None
        return place.below(rest, rest, place.found[rest], wanted)
    if kind in {"k", "v"} and isinstance(place.found, list):
        index = _index(place.found, kind, msgspec.json.decode(rest))
        if index is not None:
            entries = place.wanted if isinstance(place.wanted, list) else []
            at = _index(entries, kind, msgspec.json.decode(rest))
            key = msgspec.json.decode(rest)
            word = str(next(iter(key.values()))) if kind == "k" else str(key)
            return place.below(word, index, place.found[index], None if at is None else entries[at])
    return None


def _index(entries: Sequence[Any], kind: str, key: Any) -> int | None:
    """Keys that an entry does not spell are defaults, such as the protocol of a port."""
    for index, each in enumerate(entries):
        if kind == "v" and each == key:
            return index
        if (
            kind == "k"
            and isinstance(each, dict)
            and all(each.get(name, value) == value for name, value in key.items())
        ):
            return index
    return None


def _is_leaf(fields: Object) -> bool:
    return not fields.keys() - {"."}


def _missing(known: list[Object], found: Any, wanted: Any, path: str) -> Iterator[Edit]:
    """What we want, and neither we nor a friend are on record for."""
    if isinstance(wanted, dict):
        for name, value in wanted.items():
            # An empty field is not kept, so nobody is on record for it.
            if not value or (not path and name in _BOOKKEEPING) or (path == "metadata" and name in _IDENTITY):
                continue
            below = [each[f"f:{name}"] for each in known if f"f:{name}" in each]
            there = found.get(name) if isinstance(found, dict) else None
            yield from _below(below, there, value, f"{path}.{name}".strip("."))
    elif isinstance(wanted, list):
        for value in wanted:
            sets = [(key, below) for each in known for key, below in each.items() if key[:2] in {"k:", "v:"}]
            if not sets:
                # A list that is written whole.
                return
            names = [msgspec.json.decode(key[2:]) for key, _ in sets]
            ours = [index for index, key in enumerate(names) if _index([value], sets[index][0][0], key) is not None]
            at = _index(found or (), sets[ours[0]][0][0], names[ours[0]]) if ours else None
            word = str(value.get("name", "")) if isinstance(value, dict) else str(value)
            below = [sets[index][1] for index in ours]
            yield from _below(below, None if at is None else found[at], value, f"{path}.{word}".strip("."))


def _below(known: list[Object], found: Any, value: Any, path: str) -> Iterator[Edit]:
    if any(_is_leaf(each) for each in known):
        return
    if known or (isinstance(value, dict) and isinstance(found, dict)):
        yield from _missing(known, found, value, path)
    elif found != value:
        yield Edit(path, found, value, "")

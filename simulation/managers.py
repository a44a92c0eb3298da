"""Whose fields are whose: what server-side apply goes by, and what every other write leaves behind."""

from __future__ import annotations

from typing import Any, NamedTuple

from pincompute.kube.resource import Object
from simulation.fields import Path, Shape, closed, leaves, read, spelled
from simulation.merging import merged, without


class Writer(NamedTuple):
    manager: str
    operation: str
    """`Apply` or `Update`."""
    subresource: str = ""


Owned = dict[Writer, set[Path]]


class Conflicts(Exception):  # noqa: N818
    """An apply that does not force wants fields that others own."""

    def __init__(self, managers: list[str]) -> None:
        super().__init__(", ".join(managers))
        self.managers = managers


def owned(value: Object) -> Owned:
    entries = value["metadata"].get("managedFields") or ()
    return {
        Writer(each["manager"], each["operation"], each.get("subresource", "")): read(each["fieldsV1"])
        for each in entries
    }


def noted(value: Object, owners: Owned, now: str) -> Object:
    """With an entry for each who owns anything."""
    entries = [
        {
            "manager": writer.manager,
            "operation": writer.operation,
            "apiVersion": value["apiVersion"],
            "time": now,
            "fieldsType": "FieldsV1",
            "fieldsV1": spelled(paths),
            **({"subresource": writer.subresource} if writer.subresource else {}),
        }
        for writer, paths in owners.items()
        if paths
    ]
    before = {_writer(each): each for each in value["metadata"].get("managedFields") or ()}
    same = [
        before[_writer(each)]
        if _writer(each) in before and before[_writer(each)]["fieldsV1"] == each["fieldsV1"]
        else each
        for each in entries
    ]
    return {**value, "metadata": {**value["metadata"], "managedFields": same}}


def updated(shape: Shape, before: Object, after: Object, writer: Writer, now: str) -> Object:
    """What a writer changed is the writer's from now on, and nobody else's."""
    owners = owned(after)
    was, now_is = leaves(shape, before), leaves(shape, after)
    changed = {path for path, value in now_is.items() if path not in was or was[path] != value}
    for each in owners:
        if each != writer:
            owners[each] = {path for path in owners[each] if path not in changed and path in now_is}
    own = {path for path in owners.get(writer, set()) if path in now_is} | changed
    return noted(after, {**owners, writer: own}, now)


def applied(shape: Shape, live: Object, said: Object, writer: Writer, *, force: bool, now: str) -> Object:
    """Make what is said be so, and let go of what the same writer said last time and no more."""
    owners = owned(live)
    wants, is_ = leaves(shape, said), leaves(shape, live)
    others = {each: paths for each, paths in owners.items() if each != writer}
    taken = {path for path, value in wants.items() if path not in is_ or is_[path] != value}
    robbed = [each for each, paths in others.items() if paths & taken]
    if robbed and not force:
        raise Conflicts([each.manager for each in robbed])
    whole = merged(shape, live, said)
    left = {each: paths - taken for each, paths in others.items()}
    gone = closed(owners.get(writer, set())) - closed(wants) - closed(path for each in left.values() for path in each)
    if gone:
        whole = without(shape, whole, gone)
    return noted(whole, {**left, writer: set(wants)}, now)


def _writer(entry: Any) -> tuple[str, str, str]:
    return entry["manager"], entry["operation"], entry.get("subresource", "")

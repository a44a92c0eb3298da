"""Field ownership as in `metadata.managedFields`: how applies and updates change it, and server-side apply itself."""

from __future__ import annotations

from typing import Any, NamedTuple

from pincompute.kube.resource import Object
from simulation.field_paths import FieldPath, ListSchema, owned_values, parse_fields_v1, to_fields_v1, with_ancestors
from simulation.patches import merge_applied, remove_paths


class FieldManager(NamedTuple):
    """Identifies one entry of managedFields."""

    manager: str
    operation: str
    """`Apply` or `Update`."""
    subresource: str = ""


FieldOwners = dict[FieldManager, set[FieldPath]]


class ApplyConflict(Exception):  # noqa: N818
    """An apply without force sets fields that other managers own to other values."""

    def __init__(self, managers: list[str]) -> None:
        super().__init__(", ".join(managers))
        self.managers = managers


def owners_of(value: Object) -> FieldOwners:
    """The fields of each manager."""
    entries = value["metadata"].get("managedFields") or ()
    return {
        FieldManager(each["manager"], each["operation"], each.get("subresource", "")): parse_fields_v1(each["fieldsV1"])
        for each in entries
    }


def with_managed_fields(value: Object, owners: FieldOwners, now: str) -> Object:
    """The object with one managedFields entry per manager that owns any field. Unchanged entries keep their time."""
    entries = [
        {
            "manager": owner.manager,
            "operation": owner.operation,
            "apiVersion": value["apiVersion"],
            "time": now,
            "fieldsType": "FieldsV1",
            "fieldsV1": to_fields_v1(paths),
            **({"subresource": owner.subresource} if owner.subresource else {}),
        }
        for owner, paths in owners.items()
        if paths
    ]
    before = {_entry_key(each): each for each in value["metadata"].get("managedFields") or ()}
    same = [
        before[_entry_key(each)]
        if _entry_key(each) in before and before[_entry_key(each)]["fieldsV1"] == each["fieldsV1"]
        else each
        for each in entries
    ]
    return {**value, "metadata": {**value["metadata"], "managedFields": same}}


def record_update(schema: ListSchema, before: Object, after: Object, owner: FieldManager, now: str) -> Object:
    """Ownership after an update: every changed field belongs to the updating manager alone."""
    owners = owners_of(after)
    was, now_is = owned_values(schema, before), owned_values(schema, after)
    changed = {path for path, value in now_is.items() if path not in was or was[path] != value}
    for each in owners:
        if each != owner:
            owners[each] = {path for path in owners[each] if path not in changed and path in now_is}
    own = {path for path in owners.get(owner, set()) if path in now_is} | changed
    return with_managed_fields(after, {**owners, owner: own}, now)


def server_side_apply(
    schema: ListSchema, live: Object, applied: Object, owner: FieldManager, *, force: bool, now: str
) -> Object:
    """Sets the applied fields, and removes those that the manager applied before and leaves out now, unless shared."""
    owners = owners_of(live)
    applied_values, live_values = owned_values(schema, applied), owned_values(schema, live)
    others = {each: paths for each, paths in owners.items() if each != owner}
    changed = {path for path, value in applied_values.items() if path not in live_values or live_values[path] != value}
    conflicting = [each for each, paths in others.items() if paths & changed]
    if conflicting and not force:
        raise ApplyConflict([each.manager for each in conflicting])
    result = merge_applied(schema, live, applied)
    remaining = {each: paths - changed for each, paths in others.items()}
    released = (
        with_ancestors(owners.get(owner, set()))
        - with_ancestors(applied_values)
        - with_ancestors(path for each in remaining.values() for path in each)
    )
    if released:
        result = remove_paths(schema, result, released)
    return with_managed_fields(result, {**remaining, owner: set(applied_values)}, now)


def _entry_key(entry: Any) -> tuple[str, str, str]:
    return entry["manager"], entry["operation"], entry.get("subresource", "")

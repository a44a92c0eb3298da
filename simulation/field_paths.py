"""Field paths in the notation of managedFields, and which lists and objects are owned field by field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import msgspec

from pincompute.objects.content import Object

FieldPath: TypeAlias = tuple[str, ...]
"""Such as `f:spec`, `f:containers`, `k:{"name":"web"}`, `f:image`."""

_LIST_KEYS: dict[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "volumes": ("name",),
    "env": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "imagePullSecrets": ("name",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "schedulingGates": ("name",),
    "conditions": ("type",),
    "secrets": ("name",),
}
"""Lists of named items, with the fields that name them. All other lists are atomic, as are all lists of custom
kinds."""

_ATOMIC_OBJECTS = {
    "selector",
    "labelSelector",
    "podSelector",
    "namespaceSelector",
    "nodeSelector",
    "scopeSelector",
    "roleRef",
    "fieldRef",
    "resourceFieldRef",
    "configMapKeyRef",
    "secretKeyRef",
    "requiredDuringSchedulingIgnoredDuringExecution",
}
"""Objects that are owned as a whole."""

_NOT_OWNED = {"apiVersion", "kind"}
_NOT_OWNED_METADATA = {
    "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields",
    "deletionTimestamp", "deletionGracePeriodSeconds",
}  # fmt: skip


class ListSchema:
    """Which lists of a kind have named items. Custom resources, ours and Kubeflow's, have none."""

    def __init__(self, *, named_items: bool) -> None:
        self._named_items = named_items

    def item_keys(self, path: FieldPath) -> tuple[str, ...]:
        """The fields that name the items of a list; empty for an atomic list."""
        name = path[-1][2:]
        if path == ("f:metadata", "f:ownerReferences"):
            return ("uid",)
        if not self._named_items:
            return ()
        if name == "ports":
            return ("port", "protocol") if path == ("f:spec", "f:ports") else _port_keys(path)
        return _LIST_KEYS.get(name, ())

    def is_atomic(self, path: FieldPath) -> bool:
        """Whether an object is owned as a whole."""
        if len(path) == 3 and path[:2] == ("f:metadata", "f:ownerReferences"):
            return True
        return self._named_items and path[-1][2:] in _ATOMIC_OBJECTS


def _port_keys(path: FieldPath) -> tuple[str, ...]:
    return ("containerPort", "protocol") if any(each.startswith("k:") for each in path) else ()


BUILT_IN = ListSchema(named_items=True)
CUSTOM = ListSchema(named_items=False)


def item_path(keys: tuple[str, ...], value: Object) -> str:
    """The path element of a list item, such as `k:{"name":"web"}`."""
    fields = {key: value.get(key, "TCP" if key == "protocol" else None) for key in sorted(keys)}
    return f"k:{msgspec.json.encode(fields).decode()}"


def owned_values(schema: ListSchema, tree: Object) -> dict[FieldPath, Any]:
    """Every value that a manager can own, by path. An item of a named list is owned in addition to its fields."""
    found: dict[FieldPath, Any] = {}
    for name, value in tree.items():
        if name == "metadata":
            fields = {each: content for each, content in value.items() if each not in _NOT_OWNED_METADATA}
            for each, content in fields.items():
                found.update(_values_below(schema, ("f:metadata", f"f:{each}"), content))
        elif name not in _NOT_OWNED:
            found.update(_values_below(schema, (f"f:{name}",), value))
    return found


def _values_below(schema: ListSchema, path: FieldPath, value: Any) -> Iterator[tuple[FieldPath, Any]]:
    if isinstance(value, dict) and value and not schema.is_atomic(path):
        for name, each in value.items():
            yield from _values_below(schema, (*path, f"f:{name}"), each)
    elif path == ("f:metadata", "f:finalizers"):
        yield from (((*path, f'v:"{each}"'), each) for each in value)
    elif isinstance(value, list) and value and (keys := schema.item_keys(path)):
        for each in value:
            item = (*path, item_path(keys, each))
            if schema.is_atomic(item):
                yield item, each
            else:
                yield item, None
                yield from _values_below(schema, item, each)
    else:
        yield path, value


def with_ancestors(paths: Iterable[FieldPath]) -> set[FieldPath]:
    """The paths and all their prefixes."""
    return {path[:length] for path in paths for length in range(1, len(path) + 1)}


def to_fields_v1(paths: Iterable[FieldPath]) -> Object:
    """The paths as a `fieldsV1` tree."""
    tree: Object = {}
    owned = set(paths)
    for path in sorted(owned):
        at = tree
        for index, each in enumerate(path):
            at = at.setdefault(each, {})
            if index < len(path) - 1 and path[: index + 1] in owned:
                at.setdefault(".", {})
    return tree


def parse_fields_v1(tree: Object) -> set[FieldPath]:
    """The paths of a `fieldsV1` tree."""
    return set(_parse_below(tree, ()))


def _parse_below(tree: Object, path: FieldPath) -> Iterator[FieldPath]:
    for name, subtree in tree.items():
        if name == ".":
            yield path
        elif subtree:
            yield from _parse_below(subtree, (*path, name))
        else:
            yield (*path, name)

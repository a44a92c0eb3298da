"""Which fields an object has, spelled as Kubernetes notes whose they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import msgspec

from pincompute.objects.content import Object

Path: TypeAlias = tuple[str, ...]
"""Such as `f:spec`, `f:containers`, `k:{"name":"web"}`, `f:image`."""

_KEYS: dict[str, tuple[str, ...]] = {
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
"""Lists whose items have names; all others are one value. Where a kind of ours has such a list, it is one value too."""

_WHOLE = {
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
"""Objects that are one value."""

_NOT_NOTED = {"apiVersion", "kind"}
_NOT_NOTED_METADATA = {
    "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields",
    "deletionTimestamp", "deletionGracePeriodSeconds",
}  # fmt: skip


class Shape:
    """What must be known of a kind to tell its fields apart: ours and Kubeflow's have no lists of named items."""

    def __init__(self, *, named_items: bool) -> None:
        self._named_items = named_items

    def keys(self, path: Path) -> tuple[str, ...]:
        """By which fields the items of a list are told apart; none where the list is one value."""
        name = path[-1][2:]
        if path == ("f:metadata", "f:ownerReferences"):
            return ("uid",)
        if not self._named_items:
            return ()
        if name == "ports":
            return ("port", "protocol") if path == ("f:spec", "f:ports") else _container_ports(path)
        return _KEYS.get(name, ())

    def whole(self, path: Path) -> bool:
        """An object that is one value."""
        if len(path) == 3 and path[:2] == ("f:metadata", "f:ownerReferences"):
            return True
        return self._named_items and path[-1][2:] in _WHOLE


def _container_ports(path: Path) -> tuple[str, ...]:
    return ("containerPort", "protocol") if any(each.startswith("k:") for each in path) else ()


BUILT_IN = Shape(named_items=True)
CUSTOM = Shape(named_items=False)


def item(keys: tuple[str, ...], value: Object) -> str:
    """How an item of a list is told from the others."""
    said = {key: value.get(key, "TCP" if key == "protocol" else None) for key in sorted(keys)}
    return f"k:{msgspec.json.encode(said).decode()}"


def leaves(shape: Shape, whole: Object) -> dict[Path, Any]:
    """Every value that somebody may own, by its path; an item of a named list is one beside its fields."""
    found: dict[Path, Any] = {}
    for name, value in whole.items():
        if name == "metadata":
            said = {each: content for each, content in value.items() if each not in _NOT_NOTED_METADATA}
            for each, content in said.items():
                found.update(_below(shape, ("f:metadata", f"f:{each}"), content))
        elif name not in _NOT_NOTED:
            found.update(_below(shape, (f"f:{name}",), value))
    return found


def _below(shape: Shape, path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict) and value and not shape.whole(path):
        for name, each in value.items():
            yield from _below(shape, (*path, f"f:{name}"), each)
    elif path == ("f:metadata", "f:finalizers"):
        yield from (((*path, f'v:"{each}"'), each) for each in value)
    elif isinstance(value, list) and value and (keys := shape.keys(path)):
        for each in value:
            this = (*path, item(keys, each))
            if shape.whole(this):
                yield this, each
            else:
                yield this, None
                yield from _below(shape, this, each)
    else:
        yield path, value


def closed(paths: Iterable[Path]) -> set[Path]:
    """With all that they lie in."""
    return {path[:length] for path in paths for length in range(1, len(path) + 1)}


def spelled(paths: Iterable[Path]) -> Object:
    """As `fieldsV1` says it."""
    whole: Object = {}
    noted = set(paths)
    for path in sorted(noted):
        at = whole
        for index, each in enumerate(path):
            at = at.setdefault(each, {})
            if index < len(path) - 1 and path[: index + 1] in noted:
                at.setdefault(".", {})
    return whole


def read(spelled_: Object) -> set[Path]:
    return set(_read(spelled_, ()))


def _read(spelled_: Object, path: Path) -> Iterator[Path]:
    for name, below in spelled_.items():
        if name == ".":
            yield path
        elif below:
            yield from _read(below, (*path, name))
        else:
            yield (*path, name)

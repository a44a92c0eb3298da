"""What a cluster holds: objects at revisions, and all that ever happened to them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from pincompute.kube.resource import CLAIMS, PODS, Object, Resource
from pincompute.kube.watch import ADDED, DELETED, MODIFIED
from pincompute.objects.content import digest
from pincompute.objects.times import stamp
from simulation.clock import BEGINNING

Key = tuple[str, str]
"""Namespace (empty where there is none) and name."""

ORPHAN = "orphan"
"""The finalizer of what is to go without what it owns."""

IN_USE = "kubernetes.io/pvc-protection"
"""The finalizer of claims: they go when no pod has them any more."""


class Happened(NamedTuple):
    """One change, as watches tell it."""

    revision: int
    at: float
    type: str
    object: Object
    before: Object | None


class Store:
    """Objects in it are never changed, only replaced: a copy is made by who wants to change one."""

    def __init__(self) -> None:
        self.revision = 0
        self.history: dict[Resource, list[Happened]] = {}
        self.compacted = 0
        """What happened up to here is told to nobody any more."""
        self.moved = asyncio.Event()
        """Set at every change, for those who keep the cluster going."""
        self.memory: dict[str, Any] = {}
        """What those who keep the cluster going remember: they never crash here."""
        self._objects: dict[Resource, dict[Key, Object]] = {}
        self._listeners: list[Callable[[Resource, Happened], None]] = []
        self._encoded: dict[int, tuple[Object, bytes]] = {}
        self._made: Counter[str] = Counter()

    def listen(self, listener: Callable[[Resource, Happened], None]) -> Callable[[], None]:
        """Told of every change at once; the answer ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def now(self) -> datetime:
        return BEGINNING + timedelta(seconds=int(asyncio.get_running_loop().time()))

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        return self._objects.get(resource, {}).get((namespace, name))

    def all(self, resource: Resource) -> list[Object]:
        """In the order of their names."""
        found = self._objects.get(resource, {})
        return [found[key] for key in sorted(found)]

    def everything(self) -> Iterator[tuple[Resource, Object]]:
        for resource in sorted(self._objects):
            for each in self.all(resource):
                yield resource, each

    def encoded(self, value: Object) -> bytes:
        """Sent to many, spelled once."""
        known = self._encoded.get(id(value))
        if known is None or known[0] is not value:
            known = self._encoded[id(value)] = (value, msgspec.json.encode(value))
        return known[1]

    def create(self, resource: Resource, value: Object) -> Object:
        """With what the server gives whatever is new."""
        metadata = {
            **value["metadata"],
            "uid": self._uid(resource, value["metadata"]),
            "creationTimestamp": stamp(self.now()),
        }
        if counts_generations(resource):
            metadata["generation"] = 1
        if resource == CLAIMS:
            metadata["finalizers"] = [IN_USE]
        made = {"apiVersion": resource.api_version, "kind": resource.kind, **value, "metadata": metadata}
        return self._keep(resource, made, ADDED, None)

    def replace(self, resource: Resource, before: Object, after: Object) -> Object:
        """Nothing happens where nothing is different; what has nothing left to wait for is gone."""
        if _essence(after) == _essence(before):
            return before
        metadata = dict(after["metadata"])
        if counts_generations(resource) and _wanted(after) != _wanted(before):
            metadata["generation"] = before["metadata"].get("generation", 0) + 1
        after = {**after, "metadata": metadata}
        if metadata.get("deletionTimestamp") and not _held(resource, after):
            return self.remove(resource, after)
        return self._keep(resource, after, MODIFIED, before)

    def change(self, resource: Resource, value: Object, change: Callable[[Any], None]) -> Object:
        """For those who keep the cluster going: they change a copy of what is there now."""
        before = self.get(resource, value["metadata"]["name"], value["metadata"].get("namespace", ""))
        if before is None or before["metadata"]["uid"] != value["metadata"]["uid"]:
            return value
        after = copied(before)
        change(after)
        return self.replace(resource, before, after)

    def delete(self, resource: Resource, value: Object, propagation: str = "Background") -> None:
        """At once, or as soon as nothing holds it."""
        metadata = dict(value["metadata"])
        if propagation == "Orphan" and ORPHAN not in metadata.get("finalizers", ()):
            metadata["finalizers"] = [*metadata.get("finalizers", ()), ORPHAN]
        marked = {**value, "metadata": metadata}
        if not _held(resource, marked):
            self.remove(resource, value)
        elif not metadata.get("deletionTimestamp"):
            metadata["deletionTimestamp"] = stamp(self.now())
            if "generation" in metadata:
                metadata["generation"] += 1
            self._keep(resource, marked, MODIFIED, value)

    def remove(self, resource: Resource, value: Object) -> Object:
        return self._keep(resource, value, DELETED, value)

    def compact(self) -> None:
        """Forget what happened: who wants to go on from before must look anew."""
        self.compacted = self.revision

    def _uid(self, resource: Resource, metadata: Object) -> str:
        """The same in every run for the first of a name, and for the second: digests of natives hold their owner's."""
        whose = f"{resource.kind}/{metadata.get('namespace', '')}/{metadata['name']}"
        self._made[whose] += 1
        found = digest(f"{whose}/{self._made[whose]}")
        return f"00000000-0000-4000-8000-{found}"

    def _keep(self, resource: Resource, value: Object, type_: str, before: Object | None) -> Object:
        self.revision += 1
        kept = {**value, "metadata": {**value["metadata"], "resourceVersion": str(self.revision)}}
        metadata = kept["metadata"]
        key = metadata.get("namespace", ""), metadata["name"]
        there = self._objects.setdefault(resource, {})
        if type_ == DELETED:
            there.pop(key, None)
        else:
            there[key] = kept
        happened = Happened(self.revision, asyncio.get_running_loop().time(), type_, kept, before)
        self.history.setdefault(resource, []).append(happened)
        self.moved.set()
        for listener in list(self._listeners):
            listener(resource, happened)
        return kept


_WITHOUT_GENERATION = {
    "configmaps", "secrets", "services", "serviceaccounts", "persistentvolumeclaims", "namespaces", "events", "leases",
    "nodes", "resourcequotas", "roles", "rolebindings", "endpoints", "storageclasses",
}  # fmt: skip


def counts_generations(resource: Resource) -> bool:
    return resource.plural not in _WITHOUT_GENERATION


def copied(value: Object) -> Object:
    found: Object = msgspec.json.decode(msgspec.json.encode(value))
    return found


def _held(resource: Resource, value: Object) -> bool:
    """Something must happen before it is gone: a program ends, or who put a finalizer there does its part."""
    if value["metadata"].get("finalizers") or value.get("spec", {}).get("finalizers"):
        return True
    runs = value.get("spec", {}).get("nodeName") and value.get("status", {}).get("phase") not in {"Succeeded", "Failed"}
    return resource == PODS and bool(runs)


def _wanted(value: Object) -> Object:
    return {name: each for name, each in value.items() if name not in {"metadata", "status", "apiVersion", "kind"}}


def _essence(value: Object) -> Object:
    """All but what the server notes by itself."""
    metadata = {name: each for name, each in value["metadata"].items() if name != "resourceVersion"}
    if "managedFields" in metadata:
        metadata["managedFields"] = [
            {name: each for name, each in entry.items() if name != "time"} for entry in metadata["managedFields"]
        ]
    return {**value, "metadata": metadata}

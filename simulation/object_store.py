"""A model of etcd: objects with revisions, the history of their changes, and deletion with finalizers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from pincompute.kube.resource import PERSISTENT_VOLUME_CLAIMS, PODS, Object, Resource
from pincompute.kube.watch import ADDED, DELETED, MODIFIED
from pincompute.objects.content import content_hash
from pincompute.objects.times import format_time
from simulation.clock import START_TIME

Key = tuple[str, str]
"""Namespace, empty for cluster-scoped objects, and name."""

ORPHAN_FINALIZER = "orphan"
"""Set on objects that are deleted without their dependents."""

CLAIM_PROTECTION_FINALIZER = "kubernetes.io/pvc-protection"
"""Keeps a claim until no pod uses it."""


class StoreEvent(NamedTuple):
    """One change, from which watch events are created."""

    revision: int
    at: float
    type: str
    object: Object
    before: Object | None


class ObjectStore:
    """Stored objects are never modified in place, only replaced. So references to them are snapshots."""

    def __init__(self) -> None:
        self.revision = 0
        self.history: dict[Resource, list[StoreEvent]] = {}
        self.compacted = 0
        """History up to this revision is no longer available to watches."""
        self.changed_event = asyncio.Event()
        """Set at every change; wakes the simulated controllers."""
        self.controller_memory: dict[str, Any] = {}
        """Memory of the simulated controllers, which never crash."""
        self._objects: dict[Resource, dict[Key, Object]] = {}
        self._listeners: list[Callable[[Resource, StoreEvent], None]] = []
        self._encoded: dict[int, tuple[Object, bytes]] = {}
        self._created_counts: Counter[str] = Counter()

    def listen(self, listener: Callable[[Resource, StoreEvent], None]) -> Callable[[], None]:
        """Calls back synchronously at every change; returns a function that ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def now(self) -> datetime:
        return START_TIME + timedelta(seconds=int(asyncio.get_running_loop().time()))

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        return self._objects.get(resource, {}).get((namespace, name))

    def list_all(self, resource: Resource) -> list[Object]:
        """All objects of a kind, ordered by name."""
        found = self._objects.get(resource, {})
        return [found[key] for key in sorted(found)]

    def everything(self) -> Iterator[tuple[Resource, Object]]:
        for resource in sorted(self._objects):
            for value in self.list_all(resource):
                yield resource, value

    def encoded(self, value: Object) -> bytes:
        """The object as JSON. Cached, because an event is sent to many watches."""
        cached = self._encoded.get(id(value))
        if cached is None or cached[0] is not value:
            cached = self._encoded[id(value)] = (value, msgspec.json.encode(value))
        return cached[1]

    def create(self, resource: Resource, value: Object) -> Object:
        """Stores a new object with the metadata that the server sets."""
        metadata = {
            **value["metadata"],
            "uid": self._uid(resource, value["metadata"]),
            "creationTimestamp": format_time(self.now()),
        }
        if counts_generations(resource):
            metadata["generation"] = 1
        if resource == PERSISTENT_VOLUME_CLAIMS:
            metadata["finalizers"] = [CLAIM_PROTECTION_FINALIZER]
        created = {"apiVersion": resource.api_version, "kind": resource.kind, **value, "metadata": metadata}
        return self._store_version(resource, created, ADDED, None)

    def replace(self, resource: Resource, before: Object, after: Object) -> Object:
        """Stores a new version. Without a difference nothing is stored; without finalizers a deleted object is
        removed."""
        if _without_server_fields(after) == _without_server_fields(before):
            return before
        metadata = dict(after["metadata"])
        if counts_generations(resource) and _spec_fields(after) != _spec_fields(before):
            metadata["generation"] = before["metadata"].get("generation", 0) + 1
        after = {**after, "metadata": metadata}
        if metadata.get("deletionTimestamp") and not _is_held_back(resource, after):
            return self.remove(resource, after)
        return self._store_version(resource, after, MODIFIED, before)

    def change(self, resource: Resource, value: Object, change: Callable[[Any], None]) -> Object:
        """Changes a copy of the present version, for the simulated controllers."""
        before = self.get(resource, value["metadata"]["name"], value["metadata"].get("namespace", ""))
        if before is None or before["metadata"]["uid"] != value["metadata"]["uid"]:
            return value
        after = deep_copy(before)
        change(after)
        return self.replace(resource, before, after)

    def delete(self, resource: Resource, value: Object, propagation: str = "Background") -> None:
        """Removes an object, or marks it as deleted while something holds it back."""
        metadata = dict(value["metadata"])
        if propagation == "Orphan" and ORPHAN_FINALIZER not in metadata.get("finalizers", ()):
            metadata["finalizers"] = [*metadata.get("finalizers", ()), ORPHAN_FINALIZER]
        marked = {**value, "metadata": metadata}
        if not _is_held_back(resource, marked):
            self.remove(resource, value)
        elif not metadata.get("deletionTimestamp"):
            metadata["deletionTimestamp"] = format_time(self.now())
            if "generation" in metadata:
                metadata["generation"] += 1
            self._store_version(resource, marked, MODIFIED, value)

    def remove(self, resource: Resource, value: Object) -> Object:
        return self._store_version(resource, value, DELETED, value)

    def compact(self) -> None:
        """Discards the history: a watch from an earlier revision gets 410 Gone and has to list again."""
        self.compacted = self.revision

    def _uid(self, resource: Resource, metadata: Object) -> str:
        """The uid of the n-th object of a name. The same in every run, because hashes of natives include their
        owner's."""
        identity = f"{resource.kind}/{metadata.get('namespace', '')}/{metadata['name']}"
        self._created_counts[identity] += 1
        found = content_hash(f"{identity}/{self._created_counts[identity]}")
        return f"00000000-0000-4000-8000-{found}"

    def _store_version(self, resource: Resource, value: Object, type_: str, before: Object | None) -> Object:
        self.revision += 1
        stored = {**value, "metadata": {**value["metadata"], "resourceVersion": str(self.revision)}}
        metadata = stored["metadata"]
        key = metadata.get("namespace", ""), metadata["name"]
        objects = self._objects.setdefault(resource, {})
        if type_ == DELETED:
            objects.pop(key, None)
        else:
            objects[key] = stored
        event = StoreEvent(self.revision, asyncio.get_running_loop().time(), type_, stored, before)
        self.history.setdefault(resource, []).append(event)
        self.changed_event.set()
        for listener in list(self._listeners):
            listener(resource, event)
        return stored


_WITHOUT_GENERATION = {
    "configmaps", "secrets", "services", "serviceaccounts", "persistentvolumeclaims", "namespaces", "events", "leases",
    "nodes", "resourcequotas", "limitranges", "roles", "rolebindings", "endpoints", "storageclasses",
}  # fmt: skip


def counts_generations(resource: Resource) -> bool:
    return resource.plural not in _WITHOUT_GENERATION


def deep_copy(value: Object) -> Object:
    found: Object = msgspec.json.decode(msgspec.json.encode(value))
    return found


def _is_held_back(resource: Resource, value: Object) -> bool:
    """Whether a finalizer is left, or the containers of a pod still run."""
    if value["metadata"].get("finalizers") or value.get("spec", {}).get("finalizers"):
        return True
    runs = value.get("spec", {}).get("nodeName") and value.get("status", {}).get("phase") not in {"Succeeded", "Failed"}
    return resource == PODS and bool(runs)


def _spec_fields(value: Object) -> Object:
    return {name: each for name, each in value.items() if name not in {"metadata", "status", "apiVersion", "kind"}}


def _without_server_fields(value: Object) -> Object:
    """Without the fields that the server changes on every write."""
    metadata = {name: each for name, each in value["metadata"].items() if name != "resourceVersion"}
    if "managedFields" in metadata:
        metadata["managedFields"] = [
            {name: each for name, each in entry.items() if name != "time"} for entry in metadata["managedFields"]
        ]
    return {**value, "metadata": metadata}

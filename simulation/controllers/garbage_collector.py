"""The garbage collector and the namespace controller."""

from __future__ import annotations

from typing import Any

from pincompute.kube.resource import NAMESPACES, Object
from simulation.object_store import ORPHAN_FINALIZER, ObjectStore


def collect_garbage(store: ObjectStore) -> None:
    """Deletes objects without a remaining owner; removes owners that are being deleted with the orphan policy."""
    everything = list(store.everything())
    existing_uids = {each["metadata"]["uid"] for _, each in everything}
    orphaning = {
        each["metadata"]["uid"] for _, each in everything if ORPHAN_FINALIZER in each["metadata"].get("finalizers", ())
    }
    for resource, each in everything:
        owners = each["metadata"].get("ownerReferences") or ()
        if any(owner["uid"] in orphaning for owner in owners):
            store.change(resource, each, lambda value: _remove_owners(value, orphaning))
        elif owners and not any(owner["uid"] in existing_uids for owner in owners) and not _is_deleting(each):
            store.delete(resource, each)
    for resource, each in everything:
        if each["metadata"]["uid"] in orphaning and each["metadata"].get("deletionTimestamp"):
            store.change(resource, each, _remove_orphan_finalizer)


def _is_deleting(value: Object) -> bool:
    return bool(value["metadata"].get("deletionTimestamp"))


def _remove_owners(value: Any, owners: set[str]) -> None:
    remaining = [each for each in value["metadata"]["ownerReferences"] if each["uid"] not in owners]
    value["metadata"]["ownerReferences"] = remaining


def _remove_orphan_finalizer(value: Any) -> None:
    value["metadata"]["finalizers"] = [each for each in value["metadata"]["finalizers"] if each != ORPHAN_FINALIZER]


def finalize_namespaces(store: ObjectStore) -> None:
    """Deletes the contents of namespaces that are being deleted, then the namespaces."""
    for namespace in store.list_all(NAMESPACES):
        if not namespace["metadata"].get("deletionTimestamp"):
            continue
        name = namespace["metadata"]["name"]
        contents = [(kind, each) for kind, each in store.everything() if each["metadata"].get("namespace") == name]
        for resource, each in contents:
            if not each["metadata"].get("deletionTimestamp"):
                store.delete(resource, each)
        store.change(NAMESPACES, namespace, _finalize if not contents else _set_terminating)


def _set_terminating(namespace: Object) -> None:
    namespace["status"] = {"phase": "Terminating"}


def _finalize(namespace: Object) -> None:
    namespace["spec"]["finalizers"] = []

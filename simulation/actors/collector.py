"""What nobody owns any more goes, and so does all that lies in a namespace that goes."""

from __future__ import annotations

from typing import Any

from pincompute.kube.resource import NAMESPACES, Object
from simulation.store import ORPHAN, Store


def collect(store: Store) -> None:
    everything = list(store.everything())
    alive = {each["metadata"]["uid"] for _, each in everything}
    left_alone = {each["metadata"]["uid"] for _, each in everything if ORPHAN in each["metadata"].get("finalizers", ())}
    for resource, each in everything:
        owners = each["metadata"].get("ownerReferences") or ()
        if any(owner["uid"] in left_alone for owner in owners):
            store.change(resource, each, lambda value: _let_go(value, left_alone))
        elif owners and not any(owner["uid"] in alive for owner in owners) and not _goes(each):
            store.delete(resource, each)
    for resource, each in everything:
        if each["metadata"]["uid"] in left_alone and each["metadata"].get("deletionTimestamp"):
            store.change(resource, each, _done)


def _goes(value: Object) -> bool:
    return bool(value["metadata"].get("deletionTimestamp"))


def _let_go(value: Any, owners: set[str]) -> None:
    left = [each for each in value["metadata"]["ownerReferences"] if each["uid"] not in owners]
    value["metadata"]["ownerReferences"] = left


def _done(value: Any) -> None:
    value["metadata"]["finalizers"] = [each for each in value["metadata"]["finalizers"] if each != ORPHAN]


def end_namespaces(store: Store) -> None:
    for namespace in store.all(NAMESPACES):
        if not namespace["metadata"].get("deletionTimestamp"):
            continue
        name = namespace["metadata"]["name"]
        within = [(kind, each) for kind, each in store.everything() if each["metadata"].get("namespace") == name]
        for resource, each in within:
            if not each["metadata"].get("deletionTimestamp"):
                store.delete(resource, each)
        store.change(NAMESPACES, namespace, _empty if not within else _ending)


def _ending(namespace: Object) -> None:
    namespace["status"] = {"phase": "Terminating"}


def _empty(namespace: Object) -> None:
    namespace["spec"]["finalizers"] = []

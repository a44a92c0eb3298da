"""What all who make pods have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from pincompute.kube.resource import PODS, Object
from pincompute.objects.content import digest
from pincompute.objects.owners import controller_uid, owner_reference
from simulation.evictions import is_ready
from simulation.store import Store

_NONE: Mapping[str, str] = MappingProxyType({})


def of(store: Store, owner: Object) -> list[Object]:
    """All that it controls, in the order in which they were made."""
    uid = owner["metadata"]["uid"]
    return sorted((each for each in store.all(PODS) if controller_uid(each) == uid), key=_age)


def living(store: Store, owner: Object) -> list[Object]:
    return [each for each in of(store, owner) if lives(each)]


def lives(pod: Object) -> bool:
    return not pod["metadata"].get("deletionTimestamp") and phase(pod) not in {"Succeeded", "Failed"}


def phase(pod: Object) -> str:
    said: str = pod.get("status", {}).get("phase", "Pending")
    return said


def ready(pods: list[Object]) -> int:
    return sum(is_ready(each) for each in pods)


def template_digest(template: Object) -> str:
    return digest(template)[:10]


def make(
    store: Store,
    owner: Object,
    template: Object,
    name: str,
    *,
    labels: Mapping[str, str] = _NONE,
    annotations: Mapping[str, str] = _NONE,
    change: Callable[[Any], None] | None = None,
) -> Object:
    said = template.get("metadata", {})
    metadata: Object = {
        "name": name,
        "namespace": owner["metadata"]["namespace"],
        "labels": {**said.get("labels", {}), **labels},
        "annotations": {**said.get("annotations", {}), **annotations},
        "ownerReferences": [reference(owner)],
    }
    pod: Object = {"metadata": metadata, "spec": {**template["spec"]}, "status": {"phase": "Pending"}}
    if change:
        change(pod)
    return store.create(PODS, pod)


def numbered(store: Store, before: str) -> str:
    """A name that no other has had."""
    return f"{before}-{store.revision:05d}"


def reference(owner: Object) -> Object:
    metadata = owner["metadata"]
    return owner_reference(owner["apiVersion"], owner["kind"], metadata["name"], metadata["uid"])


def expendable(pod: Object) -> tuple[bool, str, str]:
    """Who goes first where there are too many: what does not answer, and then the newest. Sorted backwards."""
    return not is_ready(pod), *_age(pod)


def _age(pod: Object) -> tuple[str, str]:
    return pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]

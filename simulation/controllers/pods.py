"""Functions that all controllers of pods share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from pincompute.kube.resource import PODS, Object
from pincompute.objects.content import content_hash
from pincompute.objects.owners import controller_uid, owner_reference
from simulation.evictions import is_pod_ready
from simulation.object_store import ObjectStore

_EMPTY: Mapping[str, str] = MappingProxyType({})


def controlled_by(store: ObjectStore, owner: Object) -> list[Object]:
    """The pods of an owner, oldest first."""
    uid = owner["metadata"]["uid"]
    return sorted((each for each in store.list_all(PODS) if controller_uid(each) == uid), key=_age)


def live_pods(store: ObjectStore, owner: Object) -> list[Object]:
    return [each for each in controlled_by(store, owner) if is_live(each)]


def is_live(pod: Object) -> bool:
    return not pod["metadata"].get("deletionTimestamp") and pod_phase(pod) not in {"Succeeded", "Failed"}


def pod_phase(pod: Object) -> str:
    phase: str = pod.get("status", {}).get("phase", "Pending")
    return phase


def ready_count(pods: list[Object]) -> int:
    return sum(is_pod_ready(each) for each in pods)


def template_digest(template: Object) -> str:
    return content_hash(template)[:10]


def create_pod(
    store: ObjectStore,
    owner: Object,
    template: Object,
    name: str,
    *,
    labels: Mapping[str, str] = _EMPTY,
    annotations: Mapping[str, str] = _EMPTY,
    change: Callable[[Any], None] | None = None,
) -> Object:
    template_metadata = template.get("metadata", {})
    metadata: Object = {
        "name": name,
        "namespace": owner["metadata"]["namespace"],
        "labels": {**template_metadata.get("labels", {}), **labels},
        "annotations": {**template_metadata.get("annotations", {}), **annotations},
        "ownerReferences": [owner_reference_to(owner)],
    }
    pod: Object = {"metadata": metadata, "spec": {**template["spec"]}, "status": {"phase": "Pending"}}
    if change:
        change(pod)
    return store.create(PODS, pod)


def unique_name(store: ObjectStore, prefix: str) -> str:
    """A generated name that no other object has had."""
    return f"{prefix}-{store.revision:05d}"


def owner_reference_to(owner: Object) -> Object:
    metadata = owner["metadata"]
    return owner_reference(owner["apiVersion"], owner["kind"], metadata["name"], metadata["uid"])


def deletion_priority(pod: Object) -> tuple[bool, str, str]:
    """Sort key for scaling down, to be sorted in reverse: unready pods first, then the newest."""
    return not is_pod_ready(pod), *_age(pod)


def _age(pod: Object) -> tuple[str, str]:
    return pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]

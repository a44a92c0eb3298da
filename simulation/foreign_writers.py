"""Foreign writers: replace one of our objects by their own, or edit one of ours."""

from __future__ import annotations

from typing import Any

import msgspec

from pincompute.api.names import REVISION_ANNOTATION, RUNTIME_ANNOTATION, WANTED_HASH_ANNOTATION
from pincompute.kube.request import APPLY_CONTENT_TYPE, Request
from pincompute.kube.resource import NAMESPACES, Object, Resource
from pincompute.objects.times import format_time
from simulation.api_server import parse_path
from simulation.field_managers import FieldManager, record_update
from simulation.object_store import ObjectStore, deep_copy

FOREIGN_IMAGE = "foreign:1"
"""The image of containers in foreign objects."""


def edit_as_foreign_writer(store: ObjectStore, request: Request) -> None:
    """Edits the target of a write just before it. The operator must revert the edit."""
    at = parse_path(request.path)
    before = store.get(at.resource, at.name, at.namespace)
    if before is None:
        return
    after: Any = deep_copy(before)
    annotations, spec = after["metadata"].setdefault("annotations", {}), after.get("spec", {})
    if "replicas" in spec:
        spec["replicas"] += 1
    # The template of a Job is immutable.
    template = spec.get("template", {}) if "completions" not in spec else {}
    for container in template.get("spec", {}).get("containers", ()):
        container["env"] = [*container.get("env", ()), {"name": "FOREIGN", "value": "1"}]
    for name in (WANTED_HASH_ANNOTATION, REVISION_ANNOTATION, RUNTIME_ANNOTATION):
        if name in annotations:
            annotations[name] += "0"
    store.replace(
        at.resource,
        before,
        record_update(at.list_schema, before, after, FieldManager("kubectl", "Update"), format_time(store.now())),
    )


class ForeignWriter:
    """Puts a foreign object in the place of a target, and checks that the operator leaves it alone."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._created: tuple[Resource, Object] | None = None

    def replace_target(self, request: Request) -> None:
        """Replaces the object that a request is about to write."""
        at = parse_path(request.path)
        body = msgspec.json.decode(request.body)
        name = at.name or body["metadata"]["name"]
        existing = self._store.get(at.resource, name, at.namespace)
        creates = request.method == "POST" or (existing is None and request.content_type == APPLY_CONTENT_TYPE)
        sent = body if creates else None
        if existing is not None:
            self._store.remove(at.resource, existing)
        model = sent or existing
        if model is not None:
            created = self._store.create(at.resource, _foreign_object(model, name, at.namespace, labelled=sent is None))
            self._created = at.resource, created

    def remove_own_object(self) -> list[str]:
        """Removes the foreign object; returns how it was violated meanwhile."""
        if self._created is None:
            return []
        resource, created = self._created
        name = f"{resource.kind} {created['metadata']['name']}"
        if self._namespace_ending(created["metadata"]["namespace"]):
            return []
        existing = self._store.get(resource, created["metadata"]["name"], created["metadata"]["namespace"])
        if existing is None or existing["metadata"]["uid"] != created["metadata"]["uid"]:
            return [f"foreign {name} was removed"]
        self._store.remove(resource, existing)
        return [] if _content(existing) == _content(created) else [f"foreign {name} was changed"]

    def _namespace_ending(self, namespace: str) -> bool:
        """Whether the namespace is being deleted, with everything in it."""
        existing = self._store.get(NAMESPACES, namespace)
        return existing is None or "deletionTimestamp" in existing["metadata"]


def _foreign_object(model: Object, name: str, namespace: str, *, labelled: bool) -> Object:
    """A copy without an owner, optionally with our labels."""
    found: Any = deep_copy({key: value for key, value in model.items() if key not in {"metadata", "status"}})
    labels = model["metadata"].get("labels", {}) if labelled else {}
    found["metadata"] = {"name": name, "namespace": namespace, "labels": labels}
    spec = found.get("spec", {})
    for field, value in (("replicas", 0), ("suspend", True)):
        if field in spec or (field == "suspend" and "completions" in spec):
            spec[field] = value
    for container in spec.get("template", {}).get("spec", {}).get("containers", ()):
        container["image"] = FOREIGN_IMAGE
    return found  # type: ignore[no-any-return]


def _content(value: Object) -> Object:
    metadata = value["metadata"]
    sent = {key: metadata.get(key) for key in ("labels", "annotations", "ownerReferences", "deletionTimestamp")}
    return {"metadata": sent, **{key: each for key, each in value.items() if key not in {"metadata", "status"}}}

"""Other hands: somebody else's object in the place of one of ours, and an edit in one that is ours."""

from __future__ import annotations

from typing import Any

import msgspec

from pincompute.api.names import REVISION, RUNTIME, WANTED
from pincompute.kube.request import Request
from pincompute.kube.resource import NAMESPACES, Object, Resource
from pincompute.objects.times import stamp
from simulation.managers import Writer, updated
from simulation.server import target
from simulation.store import Store, copied

WHO = "stranger:1"
"""The image that theirs run, where they run any."""


def meddle(store: Store, request: Request) -> None:
    """Somebody edits what is about to be written: it must become what we say all the same."""
    at = target(request.path)
    before = store.get(at.resource, at.name, at.namespace)
    if before is None:
        return
    after: Any = copied(before)
    annotations, spec = after["metadata"].setdefault("annotations", {}), after.get("spec", {})
    if "replicas" in spec:
        spec["replicas"] += 1
    # What a Job runs nobody can edit.
    template = spec.get("template", {}) if "completions" not in spec else {}
    for each in template.get("spec", {}).get("containers", ()):
        each["env"] = [*each.get("env", ()), {"name": "MEDDLED", "value": "1"}]
    for name in (WANTED, REVISION, RUNTIME):
        if name in annotations:
            annotations[name] += "0"
    store.replace(
        at.resource, before, updated(at.shape, before, after, Writer("kubectl", "Update"), stamp(store.now()))
    )


class Stranger:
    """Takes a place, and watches over what it put there."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._theirs: tuple[Resource, Object] | None = None

    def take(self, request: Request) -> None:
        """The place that a request is about to write to."""
        at = target(request.path)
        said = msgspec.json.decode(request.body) if request.method == "POST" else None
        name = said["metadata"]["name"] if said else at.name
        there = self._store.get(at.resource, name, at.namespace)
        if there is not None:
            self._store.remove(at.resource, there)
        like = said or there
        if like is not None:
            made = self._store.create(at.resource, _theirs(like, name, at.namespace, labelled=said is None))
            self._theirs = at.resource, made

    def leave(self) -> list[str]:
        """Remove it; the answer tells what happened to it."""
        if self._theirs is None:
            return []
        resource, made = self._theirs
        name = f"{resource.kind} {made['metadata']['name']}"
        if self._ending(made["metadata"]["namespace"]):
            return []
        there = self._store.get(resource, made["metadata"]["name"], made["metadata"]["namespace"])
        if there is None or there["metadata"]["uid"] != made["metadata"]["uid"]:
            return [f"somebody else's {name} was removed"]
        self._store.remove(resource, there)
        return [] if _essence(there) == _essence(made) else [f"somebody else's {name} was changed"]

    def _ending(self, namespace: str) -> bool:
        """All that lies in it goes, whoever it belongs to."""
        there = self._store.get(NAMESPACES, namespace)
        return there is None or "deletionTimestamp" in there["metadata"]


def _theirs(like: Object, name: str, namespace: str, *, labelled: bool) -> Object:
    """Of the same shape, and of nobody; it may bear our labels all the same."""
    found: Any = copied({key: value for key, value in like.items() if key not in {"metadata", "status"}})
    labels = like["metadata"].get("labels", {}) if labelled else {}
    found["metadata"] = {"name": name, "namespace": namespace, "labels": labels}
    spec = found.get("spec", {})
    for field, value in (("replicas", 0), ("suspend", True)):
        if field in spec or (field == "suspend" and "completions" in spec):
            spec[field] = value
    for each in spec.get("template", {}).get("spec", {}).get("containers", ()):
        each["image"] = WHO
    return found  # type: ignore[no-any-return]


def _essence(value: Object) -> Object:
    metadata = value["metadata"]
    said = {key: metadata.get(key) for key in ("labels", "annotations", "ownerReferences", "deletionTimestamp")}
    return {"metadata": said, **{key: each for key, each in value.items() if key not in {"metadata", "status"}}}

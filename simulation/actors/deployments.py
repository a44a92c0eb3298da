"""Deployments: copies of the newest template take the place of the others, within surge and unavailability."""

from __future__ import annotations

from itertools import count
from math import ceil, floor
from typing import Any

from pincompute.kube.resource import DEPLOYMENTS, REPLICA_SETS, Object
from pincompute.objects.owners import controller_uid
from simulation.actors import pods
from simulation.evictions import selects
from simulation.store import Store

_HASH = "pod-template-hash"


def keep(store: Store) -> None:
    for each in store.all(DEPLOYMENTS):
        if not each["metadata"].get("deletionTimestamp"):
            _keep(store, each)


def _keep(store: Store, deployment: Object) -> None:
    spec = deployment["spec"]
    _find(store, deployment)
    sets = [each for each in store.all(REPLICA_SETS) if controller_uid(each) == deployment["metadata"]["uid"]]
    newest = next((each for each in sets if _plain(each["spec"]["template"]) == _plain(spec["template"])), None)
    if newest is None and not (spec.get("paused") and sets):
        newest = _made(store, deployment)
        sets.append(newest)
    current = newest or max(sets, key=lambda each: (each["spec"]["replicas"], each["metadata"]["name"]))
    if spec.get("paused"):
        _scale(store, current, current["spec"]["replicas"] + spec["replicas"] - _copies(sets))
    else:
        others = [each for each in sets if each is not current]
        _roll(store, spec, current, others)
        _forget(store, deployment, others)
    _tell(store, deployment, sets, newest)


def _find(store: Store, deployment: Object) -> None:
    """What nobody controls and its selector matches is its own from then on."""

    def find(each: Any) -> None:
        each["metadata"]["ownerReferences"] = [pods.reference(deployment)]

    for each in store.all(REPLICA_SETS):
        metadata = each["metadata"]
        here = metadata["namespace"] == deployment["metadata"]["namespace"]
        if (
            here
            and not controller_uid(each)
            and not metadata.get("deletionTimestamp")
            and selects(deployment["spec"], each)
        ):
            store.change(REPLICA_SETS, each, find)


def _roll(store: Store, spec: Object, newest: Object, others: list[Object]) -> None:
    rolling = spec.get("strategy", {}).get("rollingUpdate", {})
    replicas = spec["replicas"]
    surge = _share(rolling.get("maxSurge", "25%"), replicas, ceil)
    unavailable = _share(rolling.get("maxUnavailable", "25%"), replicas, floor)
    least = replicas - (unavailable if surge or unavailable else 1)
    total, has = _copies([newest, *others]), newest["spec"]["replicas"]
    wanted = replicas if has > replicas else min(replicas, has + max(0, replicas + surge - total))
    _scale(store, newest, wanted)
    answering = {each["metadata"]["uid"]: pods.ready(pods.living(store, each)) for each in [newest, *others]}
    spare = total - least - max(0, has - answering[newest["metadata"]["uid"]])
    healthy_spare = sum(answering.values()) - least
    for each in others:
        here, well = each["spec"]["replicas"], answering[each["metadata"]["uid"]]
        ill = max(0, min(here - well, spare))
        goes = ill + max(0, min(here - ill, healthy_spare, spare - ill))
        spare, healthy_spare = spare - goes, healthy_spare - max(0, goes - ill)
        _scale(store, each, here - goes)


def _plain(template: Object) -> Object:
    """By this, and by no name or label, it knows which of them is its newest."""
    metadata = template.get("metadata", {})
    labels = {name: value for name, value in metadata.get("labels", {}).items() if name != _HASH}
    return {**template, "metadata": {"labels": labels, "annotations": metadata.get("annotations") or {}}}


def _free(store: Store, deployment: Object) -> str:
    """Another one may have been made of such a template, and changed since."""
    metadata, template = deployment["metadata"], deployment["spec"]["template"]
    tries = (pods.template_digest({**template, "tries": each} if each else template) for each in count())
    return next(
        each for each in tries if store.get(REPLICA_SETS, f"{metadata['name']}-{each}", metadata["namespace"]) is None
    )


def _forget(store: Store, deployment: Object, others: list[Object]) -> None:
    """Those that have nothing left, once all is done, beyond as many as are kept."""
    empty = [each for each in others if not each["spec"]["replicas"] and not pods.of(store, each)]
    if len(empty) == len(others):
        for each in empty[: max(0, len(empty) - deployment["spec"].get("revisionHistoryLimit", 10))]:
            store.delete(REPLICA_SETS, each)


def _made(store: Store, deployment: Object) -> Object:
    template, digest = deployment["spec"]["template"], _free(store, deployment)
    labels = {**template.get("metadata", {}).get("labels", {}), _HASH: digest}
    metadata = {
        "name": f"{deployment['metadata']['name']}-{digest}",
        "namespace": deployment["metadata"]["namespace"],
        "labels": labels,
        "ownerReferences": [pods.reference(deployment)],
    }
    labelled = {**template, "metadata": {**template.get("metadata", {}), "labels": labels}}
    return store.create(REPLICA_SETS, {"metadata": metadata, "spec": {"replicas": 0, "template": labelled}})


def _scale(store: Store, replica_set: Object, replicas: int) -> None:
    def change(each: Any) -> None:
        each["spec"]["replicas"] = max(0, replicas)

    store.change(REPLICA_SETS, replica_set, change)


def _copies(sets: list[Object]) -> int:
    return sum(each["spec"]["replicas"] for each in sets)


def _tell(store: Store, deployment: Object, sets: list[Object], newest: Object | None) -> None:
    alive = [pod for each in sets for pod in pods.living(store, each)]
    new = pods.living(store, newest) if newest else []
    answering = pods.ready(alive)
    wanted = deployment["spec"]["replicas"]
    conditions = [
        {"type": "Available", "status": "True" if answering >= wanted else "False"},
        {"type": "Progressing", "status": "True"},
    ]

    def change(each: Any) -> None:
        each["status"] = {
            "observedGeneration": each["metadata"]["generation"],
            "replicas": len(alive),
            "updatedReplicas": len(new),
            "readyReplicas": answering,
            "availableReplicas": answering,
            "conditions": conditions,
        }

    store.change(DEPLOYMENTS, deployment, change)


def _share(value: Any, of: int, rounded: Any) -> int:
    said = str(value)
    return int(rounded(of * int(said[:-1]) / 100)) if said.endswith("%") else int(said)

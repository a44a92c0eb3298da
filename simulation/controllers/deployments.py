"""The Deployment controller: rolling update of ReplicaSets within maxSurge and maxUnavailable."""

from __future__ import annotations

from itertools import count
from math import ceil, floor
from typing import Any

from pincompute.kube.resource import DEPLOYMENTS, REPLICA_SETS, Object
from pincompute.objects.owners import controller_uid
from simulation.controllers import pods
from simulation.evictions import selector_matches
from simulation.object_store import ObjectStore

_HASH_LABEL = "pod-template-hash"


def reconcile_deployments(store: ObjectStore) -> None:
    for each in store.list_all(DEPLOYMENTS):
        if not each["metadata"].get("deletionTimestamp"):
            _reconcile_deployment(store, each)


def _reconcile_deployment(store: ObjectStore, deployment: Object) -> None:
    spec = deployment["spec"]
    _adopt_replica_sets(store, deployment)
    sets = [each for each in store.list_all(REPLICA_SETS) if controller_uid(each) == deployment["metadata"]["uid"]]
    newest = next(
        (each for each in sets if _without_hash(each["spec"]["template"]) == _without_hash(spec["template"])), None
    )
    if newest is None and not (spec.get("paused") and sets):
        newest = _create_replica_set(store, deployment)
        sets.append(newest)
    current = newest or max(sets, key=lambda each: (each["spec"]["replicas"], each["metadata"]["name"]))
    if spec.get("paused"):
        _scale_replica_set(store, current, current["spec"]["replicas"] + spec["replicas"] - _total_replicas(sets))
    else:
        others = [each for each in sets if each is not current]
        _roll_replica_sets(store, spec, current, others)
        _delete_old_replica_sets(store, deployment, others)
    _update_deployment_status(store, deployment, sets, newest)


def _adopt_replica_sets(store: ObjectStore, deployment: Object) -> None:
    """Adopts ReplicaSets that match the selector and have no controller."""

    def adopt(each: Any) -> None:
        each["metadata"]["ownerReferences"] = [pods.owner_reference_to(deployment)]

    for each in store.list_all(REPLICA_SETS):
        metadata = each["metadata"]
        here = metadata["namespace"] == deployment["metadata"]["namespace"]
        if (
            here
            and not controller_uid(each)
            and not metadata.get("deletionTimestamp")
            and selector_matches(deployment["spec"], each)
        ):
            store.change(REPLICA_SETS, each, adopt)


def _roll_replica_sets(store: ObjectStore, spec: Object, newest: Object, others: list[Object]) -> None:
    rolling = spec.get("strategy", {}).get("rollingUpdate", {})
    replicas = spec["replicas"]
    surge = _rounded_share(rolling.get("maxSurge", "25%"), replicas, ceil)
    unavailable = _rounded_share(rolling.get("maxUnavailable", "25%"), replicas, floor)
    least = replicas - (unavailable if surge or unavailable else 1)
    total, has = _total_replicas([newest, *others]), newest["spec"]["replicas"]
    wanted = replicas if has > replicas else min(replicas, has + max(0, replicas + surge - total))
    _scale_replica_set(store, newest, wanted)
    ready_counts = {
        each["metadata"]["uid"]: pods.ready_count(pods.live_pods(store, each)) for each in [newest, *others]
    }
    spare = total - least - max(0, has - ready_counts[newest["metadata"]["uid"]])
    healthy_spare = sum(ready_counts.values()) - least
    for each in others:
        here, ready = each["spec"]["replicas"], ready_counts[each["metadata"]["uid"]]
        unready = max(0, min(here - ready, spare))
        removed = unready + max(0, min(here - unready, healthy_spare, spare - unready))
        spare, healthy_spare = spare - removed, healthy_spare - max(0, removed - unready)
        _scale_replica_set(store, each, here - removed)


def _without_hash(template: Object) -> Object:
    """The template without the hash label. The newest ReplicaSet is found by comparing it, not by name or label."""
    metadata = template.get("metadata", {})
    labels = {name: value for name, value in metadata.get("labels", {}).items() if name != _HASH_LABEL}
    return {**template, "metadata": {"labels": labels, "annotations": metadata.get("annotations") or {}}}


def _free_hash(store: ObjectStore, deployment: Object) -> str:
    """A hash that gives a free name: a ReplicaSet of this template may exist and have been changed in place since."""
    metadata, template = deployment["metadata"], deployment["spec"]["template"]
    tries = (pods.template_digest({**template, "tries": each} if each else template) for each in count())
    return next(
        each for each in tries if store.get(REPLICA_SETS, f"{metadata['name']}-{each}", metadata["namespace"]) is None
    )


def _delete_old_replica_sets(store: ObjectStore, deployment: Object, others: list[Object]) -> None:
    """Deletes empty ReplicaSets beyond the history limit, once the rollout is complete."""
    empty = [each for each in others if not each["spec"]["replicas"] and not pods.controlled_by(store, each)]
    if len(empty) == len(others):
        for each in empty[: max(0, len(empty) - deployment["spec"].get("revisionHistoryLimit", 10))]:
            store.delete(REPLICA_SETS, each)


def _create_replica_set(store: ObjectStore, deployment: Object) -> Object:
    template, template_hash = deployment["spec"]["template"], _free_hash(store, deployment)
    labels = {**template.get("metadata", {}).get("labels", {}), _HASH_LABEL: template_hash}
    metadata = {
        "name": f"{deployment['metadata']['name']}-{template_hash}",
        "namespace": deployment["metadata"]["namespace"],
        "labels": labels,
        "ownerReferences": [pods.owner_reference_to(deployment)],
    }
    labelled = {**template, "metadata": {**template.get("metadata", {}), "labels": labels}}
    return store.create(REPLICA_SETS, {"metadata": metadata, "spec": {"replicas": 0, "template": labelled}})


def _scale_replica_set(store: ObjectStore, replica_set: Object, replicas: int) -> None:
    def change(each: Any) -> None:
        each["spec"]["replicas"] = max(0, replicas)

    store.change(REPLICA_SETS, replica_set, change)


def _total_replicas(sets: list[Object]) -> int:
    return sum(each["spec"]["replicas"] for each in sets)


def _update_deployment_status(
    store: ObjectStore, deployment: Object, sets: list[Object], newest: Object | None
) -> None:
    alive = [pod for each in sets for pod in pods.live_pods(store, each)]
    new = pods.live_pods(store, newest) if newest else []
    ready = pods.ready_count(alive)
    wanted = deployment["spec"]["replicas"]
    conditions = [
        {"type": "Available", "status": "True" if ready >= wanted else "False"},
        {"type": "Progressing", "status": "True"},
    ]

    def change(each: Any) -> None:
        each["status"] = {
            "observedGeneration": each["metadata"]["generation"],
            "replicas": len(alive),
            "updatedReplicas": len(new),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "conditions": conditions,
        }

    store.change(DEPLOYMENTS, deployment, change)


def _rounded_share(value: Any, of: int, rounded: Any) -> int:
    text = str(value)
    return int(rounded(of * int(text[:-1]) / 100)) if text.endswith("%") else int(text)

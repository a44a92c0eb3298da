"""The ReplicaSet controller: creates and deletes pods up to the wanted number."""

from __future__ import annotations

from typing import Any

from pincompute.kube.resource import PODS, REPLICA_SETS, Object
from simulation.controllers import pods
from simulation.object_store import ObjectStore


def reconcile_replica_sets(store: ObjectStore) -> None:
    for each in store.list_all(REPLICA_SETS):
        if each["metadata"].get("deletionTimestamp"):
            continue
        live = pods.live_pods(store, each)
        surplus = len(live) - each["spec"]["replicas"]
        for pod in sorted(live, key=pods.deletion_priority, reverse=True)[: max(0, surplus)]:
            store.delete(PODS, pod)
        for _ in range(-surplus):
            pods.create_pod(store, each, each["spec"]["template"], pods.unique_name(store, each["metadata"]["name"]))
        _update_replica_set_status(store, each)


def _update_replica_set_status(store: ObjectStore, replica_set: Object) -> None:
    alive = pods.live_pods(store, replica_set)
    labels = replica_set["spec"]["template"]["metadata"]["labels"].items()
    labelled = [each for each in alive if labels <= each["metadata"]["labels"].items()]

    def change(each: Any) -> None:
        each["status"] = {
            "observedGeneration": each["metadata"]["generation"],
            "replicas": len(alive),
            "fullyLabeledReplicas": len(labelled),
            "readyReplicas": pods.ready_count(alive),
        }

    store.change(REPLICA_SETS, replica_set, change)

"""ReplicaSets: as many pods as they say."""

from __future__ import annotations

from typing import Any

from pincompute.kube.resource import PODS, REPLICA_SETS, Object
from simulation.actors import pods
from simulation.store import Store


def keep(store: Store) -> None:
    for each in store.all(REPLICA_SETS):
        if each["metadata"].get("deletionTimestamp"):
            continue
        there = pods.living(store, each)
        over = len(there) - each["spec"]["replicas"]
        for pod in sorted(there, key=pods.expendable, reverse=True)[: max(0, over)]:
            store.delete(PODS, pod)
        for _ in range(-over):
            pods.make(store, each, each["spec"]["template"], pods.numbered(store, each["metadata"]["name"]))
        _tell(store, each)


def _tell(store: Store, replica_set: Object) -> None:
    alive = pods.living(store, replica_set)
    labels = replica_set["spec"]["template"]["metadata"]["labels"].items()
    labelled = [each for each in alive if labels <= each["metadata"]["labels"].items()]

    def change(each: Any) -> None:
        each["status"] = {
            "observedGeneration": each["metadata"]["generation"],
            "replicas": len(alive),
            "fullyLabeledReplicas": len(labelled),
            "readyReplicas": pods.ready(alive),
        }

    store.change(REPLICA_SETS, replica_set, change)

"""ReplicaSets: as many pods as they say."""

from __future__ import annotations

from pincompute.kube.resource import PODS, REPLICA_SETS
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

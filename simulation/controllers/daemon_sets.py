"""The DaemonSet controller: one pod per node. Pods are replaced only after they were deleted (OnDelete)."""

from __future__ import annotations

from typing import Any

from pincompute.kube.resource import DAEMON_SETS, NODES, PODS, Object
from simulation.controllers import pods
from simulation.object_store import ObjectStore

_HASH_LABEL = "controller-revision-hash"


def reconcile_daemon_sets(store: ObjectStore) -> None:
    for each in store.list_all(DAEMON_SETS):
        if not each["metadata"].get("deletionTimestamp"):
            _reconcile_daemon_set(store, each)


def _reconcile_daemon_set(store: ObjectStore, daemon_set: Object) -> None:
    template = daemon_set["spec"]["template"]
    template_hash = pods.template_digest(template)
    nodes = [each for each in store.list_all(NODES) if _node_matches(each, template["spec"])]
    names = [each["metadata"]["name"] for each in nodes]
    existing = pods.controlled_by(store, daemon_set)
    for pod in existing:
        if pods.is_live(pod) and pod["spec"].get("nodeName") not in names:
            store.delete(PODS, pod)
    occupied = {each["spec"].get("nodeName") for each in existing}
    for name in names:
        if name not in occupied:
            _create_daemon_pod(store, daemon_set, name, template_hash)
    _update_daemon_set_status(store, daemon_set, names, template_hash)


def _create_daemon_pod(store: ObjectStore, daemon_set: Object, node: str, template_hash: str) -> None:
    def bind(pod: Any) -> None:
        pod["spec"]["nodeName"] = node

    name = pods.unique_name(store, daemon_set["metadata"]["name"])
    pods.create_pod(
        store, daemon_set, daemon_set["spec"]["template"], name, labels={_HASH_LABEL: template_hash}, change=bind
    )


def _update_daemon_set_status(store: ObjectStore, daemon_set: Object, nodes: list[str], template_hash: str) -> None:
    alive = pods.live_pods(store, daemon_set)

    def change(each: Any) -> None:
        each["status"] = {
            "observedGeneration": each["metadata"]["generation"],
            "desiredNumberScheduled": len(nodes),
            "currentNumberScheduled": len(alive),
            "numberReady": pods.ready_count(alive),
            "updatedNumberScheduled": sum(pod["metadata"]["labels"].get(_HASH_LABEL) == template_hash for pod in alive),
            "numberMisscheduled": 0,
        }

    store.change(DAEMON_SETS, daemon_set, change)


def _node_matches(node: Object, spec: Object) -> bool:
    labels = node["metadata"].get("labels", {})
    return all(labels.get(name) == value for name, value in spec.get("nodeSelector", {}).items())

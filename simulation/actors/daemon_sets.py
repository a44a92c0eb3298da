"""DaemonSets: a pod on each node, made anew only when somebody else has ended it."""

from __future__ import annotations

from typing import Any

from pincompute.kube.resource import DAEMON_SETS, NODES, PODS, Object
from simulation.actors import pods
from simulation.store import Store

_HASH = "controller-revision-hash"


def keep(store: Store) -> None:
    for each in store.all(DAEMON_SETS):
        if not each["metadata"].get("deletionTimestamp"):
            _keep(store, each)


def _keep(store: Store, daemon_set: Object) -> None:
    template = daemon_set["spec"]["template"]
    digest = pods.template_digest(template)
    nodes = [each for each in store.all(NODES) if _suits(each, template["spec"])]
    names = [each["metadata"]["name"] for each in nodes]
    there = pods.of(store, daemon_set)
    for pod in there:
        if pods.lives(pod) and pod["spec"].get("nodeName") not in names:
            store.delete(PODS, pod)
    taken = {each["spec"].get("nodeName") for each in there}
    for name in names:
        if name not in taken:
            _make(store, daemon_set, name, digest)
    _tell(store, daemon_set, names, digest)


def _make(store: Store, daemon_set: Object, node: str, digest: str) -> None:
    def bind(pod: Any) -> None:
        pod["spec"]["nodeName"] = node

    name = pods.numbered(store, daemon_set["metadata"]["name"])
    pods.make(store, daemon_set, daemon_set["spec"]["template"], name, labels={_HASH: digest}, change=bind)


def _tell(store: Store, daemon_set: Object, nodes: list[str], digest: str) -> None:
    alive = pods.living(store, daemon_set)

    def change(each: Any) -> None:
        each["status"] = {
            "observedGeneration": each["metadata"]["generation"],
            "desiredNumberScheduled": len(nodes),
            "currentNumberScheduled": len(alive),
            "numberReady": pods.ready(alive),
            "updatedNumberScheduled": sum(pod["metadata"]["labels"].get(_HASH) == digest for pod in alive),
            "numberMisscheduled": 0,
        }

    store.change(DAEMON_SETS, daemon_set, change)


def _suits(node: Object, spec: Object) -> bool:
    labels = node["metadata"].get("labels", {})
    return all(labels.get(name) == value for name, value in spec.get("nodeSelector", {}).items())

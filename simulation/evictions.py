"""Eviction: a pod is asked to make room, and goes where its budget allows it."""

from __future__ import annotations

from pincompute.kube.resource import DISRUPTION_BUDGETS, PODS, Object
from simulation.refusals import Refusal, conflict
from simulation.store import Store


def evict(store: Store, pod: Object, asked: Object) -> None:
    metadata = pod["metadata"]
    uid = asked.get("deleteOptions", {}).get("preconditions", {}).get("uid")
    if uid and uid != metadata["uid"]:
        raise conflict(PODS, metadata["name"], f"the UID in the precondition ({uid}) does not match")
    if not metadata.get("deletionTimestamp") and not _spare(store, pod):
        why = "Cannot evict pod as it would violate the pod's disruption budget."
        raise Refusal(429, "TooManyRequests", why, {"causes": [{"reason": "DisruptionBudget", "message": why}]})
    store.delete(PODS, pod)


def _spare(store: Store, pod: Object) -> bool:
    """Whether all its budgets can spare it; what is not ready is spared anyway."""
    if not is_ready(pod):
        return True
    for budget in store.all(DISRUPTION_BUDGETS):
        if budget["metadata"]["namespace"] == pod["metadata"]["namespace"] and selects(budget["spec"], pod):
            if budget.get("status", {}).get("disruptionsAllowed", 0) < 1:
                return False
            store.change(DISRUPTION_BUDGETS, budget, _one_less)
    return True


def _one_less(budget: Object) -> None:
    budget["status"]["disruptionsAllowed"] -= 1


def selects(spec: Object, pod: Object) -> bool:
    labels = pod["metadata"].get("labels") or {}
    wanted = spec.get("selector", {}).get("matchLabels", {})
    return all(labels.get(name) == value for name, value in wanted.items())


def is_ready(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

"""The eviction API: deletes a pod unless a disruption budget forbids it."""

from __future__ import annotations

from pincompute.kube.resource import POD_DISRUPTION_BUDGETS, PODS, Object
from simulation.api_errors import ApiRefusal, conflict_refusal
from simulation.object_store import ObjectStore


def evict_pod(store: ObjectStore, pod: Object, eviction: Object) -> None:
    """Deletes a pod, or refuses with 429 as the API server does."""
    metadata = pod["metadata"]
    uid = eviction.get("deleteOptions", {}).get("preconditions", {}).get("uid")
    if uid and uid != metadata["uid"]:
        raise conflict_refusal(PODS, metadata["name"], f"the UID in the precondition ({uid}) does not match")
    if not metadata.get("deletionTimestamp") and not _budgets_allow(store, pod):
        why = "Cannot evict pod as it would violate the pod's disruption budget."
        raise ApiRefusal(429, "TooManyRequests", why, {"causes": [{"reason": "DisruptionBudget", "message": why}]})
    store.delete(PODS, pod)


def _budgets_allow(store: ObjectStore, pod: Object) -> bool:
    """Whether all budgets of a pod allow its disruption; uses one of each. An unready pod needs no permission."""
    if not is_pod_ready(pod):
        return True
    for budget in store.list_all(POD_DISRUPTION_BUDGETS):
        if budget["metadata"]["namespace"] == pod["metadata"]["namespace"] and selector_matches(budget["spec"], pod):
            if budget.get("status", {}).get("disruptionsAllowed", 0) < 1:
                return False
            store.change(POD_DISRUPTION_BUDGETS, budget, _use_one_disruption)
    return True


def _use_one_disruption(budget: Object) -> None:
    budget["status"]["disruptionsAllowed"] -= 1


def selector_matches(spec: Object, pod: Object) -> bool:
    labels = pod["metadata"].get("labels") or {}
    wanted = spec.get("selector", {}).get("matchLabels", {})
    return all(labels.get(name) == value for name, value in wanted.items())


def is_pod_ready(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

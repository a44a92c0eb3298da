"""Binds claims, and keeps the status of disruption budgets and quotas up to date."""

from __future__ import annotations

from math import ceil
from typing import Any

from pincompute.kube.resource import PERSISTENT_VOLUME_CLAIMS, POD_DISRUPTION_BUDGETS, PODS, RESOURCE_QUOTAS, Object
from simulation.controllers import pods
from simulation.evictions import is_pod_ready, selector_matches
from simulation.object_store import ObjectStore


def bind_claims(store: ObjectStore) -> None:
    def bind(claim: Any) -> None:
        claim["spec"].setdefault("volumeName", f"pv-{claim['metadata']['name']}")
        size = claim["spec"]["resources"]["requests"]["storage"]
        claim["status"] = {"phase": "Bound", "capacity": {"storage": size}, "accessModes": claim["spec"]["accessModes"]}

    for each in store.list_all(PERSISTENT_VOLUME_CLAIMS):
        store.change(PERSISTENT_VOLUME_CLAIMS, each, bind)


def finalize_claims(store: ObjectStore) -> None:
    """Removes the protection from deleted claims that no pod uses."""
    used = {
        (pod["metadata"]["namespace"], each["persistentVolumeClaim"]["claimName"])
        for pod in store.list_all(PODS)
        for each in pod["spec"].get("volumes", ())
        if "persistentVolumeClaim" in each
    }
    for claim in store.list_all(PERSISTENT_VOLUME_CLAIMS):
        metadata = claim["metadata"]
        if metadata.get("deletionTimestamp") and (metadata["namespace"], metadata["name"]) not in used:
            store.change(PERSISTENT_VOLUME_CLAIMS, claim, lambda each: each["metadata"].update(finalizers=[]))


def count_disruptions(store: ObjectStore) -> None:
    for each in store.list_all(POD_DISRUPTION_BUDGETS):
        pods_of_budget = [
            pod
            for pod in store.list_all(PODS)
            if pod["metadata"]["namespace"] == each["metadata"]["namespace"]
            and selector_matches(each["spec"], pod)
            and pods.is_live(pod)
        ]
        healthy = sum(is_pod_ready(pod) for pod in pods_of_budget)
        wanted = _required_healthy(each["spec"], len(pods_of_budget))
        status = {
            "observedGeneration": each["metadata"]["generation"],
            "expectedPods": len(pods_of_budget),
            "currentHealthy": healthy,
            "desiredHealthy": wanted,
            "disruptionsAllowed": max(0, healthy - wanted),
        }
        store.change(POD_DISRUPTION_BUDGETS, each, lambda budget, status=status: budget.update(status=status))


def count_quotas(store: ObjectStore) -> None:
    for each in store.list_all(RESOURCE_QUOTAS):
        hard = each["spec"].get("hard", {})
        status = {"hard": hard, "used": dict.fromkeys(hard, "0")}
        store.change(RESOURCE_QUOTAS, each, lambda quota, status=status: quota.update(status=status))


def _required_healthy(spec: Object, expected: int) -> int:
    if "maxUnavailable" in spec:
        return max(0, expected - _rounded_up_share(spec["maxUnavailable"], expected))
    return _rounded_up_share(spec.get("minAvailable", 0), expected)


def _rounded_up_share(value: Any, of: int) -> int:
    text = str(value)
    return ceil(of * int(text[:-1]) / 100) if text.endswith("%") else int(text)

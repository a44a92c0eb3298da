"""Claims are bound, budgets and quotas counted."""

from __future__ import annotations

from math import ceil
from typing import Any

from pincompute.kube.resource import CLAIMS, DISRUPTION_BUDGETS, PODS, RESOURCE_QUOTAS, Object
from simulation.actors import pods
from simulation.evictions import is_ready, selects
from simulation.store import Store


def bind_claims(store: Store) -> None:
    def bind(claim: Any) -> None:
        claim["spec"].setdefault("volumeName", f"pv-{claim['metadata']['name']}")
        size = claim["spec"]["resources"]["requests"]["storage"]
        claim["status"] = {"phase": "Bound", "capacity": {"storage": size}, "accessModes": claim["spec"]["accessModes"]}

    for each in store.all(CLAIMS):
        store.change(CLAIMS, each, bind)


def end_claims(store: Store) -> None:
    """Those that are to go, and that no pod has."""
    used = {
        (pod["metadata"]["namespace"], each["persistentVolumeClaim"]["claimName"])
        for pod in store.all(PODS)
        for each in pod["spec"].get("volumes", ())
        if "persistentVolumeClaim" in each
    }
    for claim in store.all(CLAIMS):
        metadata = claim["metadata"]
        if metadata.get("deletionTimestamp") and (metadata["namespace"], metadata["name"]) not in used:
            store.change(CLAIMS, claim, lambda each: each["metadata"].update(finalizers=[]))


def count_disruptions(store: Store) -> None:
    for each in store.all(DISRUPTION_BUDGETS):
        theirs = [
            pod
            for pod in store.all(PODS)
            if pod["metadata"]["namespace"] == each["metadata"]["namespace"]
            and selects(each["spec"], pod)
            and pods.lives(pod)
        ]
        healthy = sum(is_ready(pod) for pod in theirs)
        wanted = _wanted(each["spec"], len(theirs))
        status = {
            "observedGeneration": each["metadata"]["generation"],
            "expectedPods": len(theirs),
            "currentHealthy": healthy,
            "desiredHealthy": wanted,
            "disruptionsAllowed": max(0, healthy - wanted),
        }
        store.change(DISRUPTION_BUDGETS, each, lambda budget, status=status: budget.update(status=status))


def count_quotas(store: Store) -> None:
    for each in store.all(RESOURCE_QUOTAS):
        hard = each["spec"].get("hard", {})
        status = {"hard": hard, "used": dict.fromkeys(hard, "0")}
        store.change(RESOURCE_QUOTAS, each, lambda quota, status=status: quota.update(status=status))


def _wanted(spec: Object, expected: int) -> int:
    if "maxUnavailable" in spec:
        return max(0, expected - _share(spec["maxUnavailable"], expected))
    return _share(spec.get("minAvailable", 0), expected)


def _share(value: Any, of: int) -> int:
    said = str(value)
    return ceil(of * int(said[:-1]) / 100) if said.endswith("%") else int(said)

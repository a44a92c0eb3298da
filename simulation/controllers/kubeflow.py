"""Kubeflow's training operator: creates and replaces the pods of a PyTorchJob and reports its conditions."""

from __future__ import annotations

from typing import Any

from pincompute.kube.resource import PODS, PYTORCH_JOBS, Object
from pincompute.objects.times import format_time
from simulation.controllers import pods
from simulation.object_store import ObjectStore

_NAME, _ROLE, _INDEX = (f"training.kubeflow.org/{each}" for each in ("job-name", "replica-type", "replica-index"))
_LEADER_ROLE = "master"


def reconcile_training_jobs(store: ObjectStore) -> None:
    for each in store.list_all(PYTORCH_JOBS):
        if not each["metadata"].get("deletionTimestamp"):
            _reconcile_training_job(store, each)


def _reconcile_training_job(store: ObjectStore, job: Object) -> None:
    existing = {each["metadata"]["name"]: each for each in pods.controlled_by(store, job)}
    policy = job["spec"].get("runPolicy", {})
    if _is_finished(job):
        _delete_pods(store, existing, policy.get("cleanPodPolicy", "None"))
        return
    if policy.get("suspend"):
        _delete_pods(store, existing, "All")
        _add_condition(store, job, "Suspended")
        return
    _remove_condition(store, job, "Suspended")
    for role, spec in job["spec"]["pytorchReplicaSpecs"].items():
        for index in range(spec["replicas"]):
            _ensure_pod(store, job, role.lower(), index, spec, existing)
    leader = next((each for each in existing.values() if each["metadata"]["labels"][_ROLE] == _LEADER_ROLE), None)
    if any(pods.pod_phase(each) == "Failed" for each in existing.values()):
        _add_condition(store, job, "Failed")
    elif leader and pods.pod_phase(leader) == "Succeeded":
        _add_condition(store, job, "Succeeded")
    elif leader and pods.pod_phase(leader) == "Running":
        _add_condition(store, job, "Running")


def _ensure_pod(  # noqa: PLR0917  (identifies one replica)
    store: ObjectStore, job: Object, role: str, index: int, spec: Object, existing: dict[str, Object]
) -> None:
    name = f"{job['metadata']['name']}-{role}-{index}"
    if name in existing:
        return
    labels = {_NAME: job["metadata"]["name"], _ROLE: role, _INDEX: str(index)}

    def change(pod: Any) -> None:
        pod["spec"]["restartPolicy"] = spec.get("restartPolicy", "Never")

    if store.get(PODS, name, job["metadata"]["namespace"]) is None:
        pods.create_pod(store, job, spec["template"], name, labels=labels, change=change)


def _delete_pods(store: ObjectStore, existing: dict[str, Object], policy: str) -> None:
    for each in existing.values():
        if policy == "All" or (policy == "Running" and pods.is_live(each)):
            store.delete(PODS, each)


def _is_finished(job: Object) -> bool:
    return any(each["type"] in {"Succeeded", "Failed"} for each in job.get("status", {}).get("conditions", ()))


def _add_condition(store: ObjectStore, job: Object, condition: str) -> None:
    def change(each: Any) -> None:
        status = each.setdefault("status", {})
        status.setdefault("startTime", format_time(store.now()))
        known = [one for one in status.get("conditions", ()) if one["type"] != "Running"]
        if not any(one["type"] == condition for one in known):
            new_condition = {
                "type": condition,
                "status": "True",
                "reason": f"PyTorchJob{condition}",
                "message": "",
                "lastTransitionTime": format_time(store.now()),
            }
            status["conditions"] = [*known, new_condition]

    store.change(PYTORCH_JOBS, job, change)


def _remove_condition(store: ObjectStore, job: Object, condition: str) -> None:
    def change(each: Any) -> None:
        status = each.setdefault("status", {})
        status["conditions"] = [one for one in status["conditions"] if one["type"] != condition]

    if any(each["type"] == condition for each in job.get("status", {}).get("conditions", ())):
        store.change(PYTORCH_JOBS, job, change)

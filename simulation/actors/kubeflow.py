"""Kubeflow's training operator: the pods of a PyTorchJob, made anew where they are gone, and what became of it."""

from __future__ import annotations

from typing import Any

from pincompute.kube.resource import PODS, PYTORCH_JOBS, Object
from pincompute.objects.times import stamp
from simulation.actors import pods
from simulation.store import Store

_NAME, _ROLE, _INDEX = (f"training.kubeflow.org/{each}" for each in ("job-name", "replica-type", "replica-index"))
_LEADS = "master"


def keep(store: Store) -> None:
    for each in store.all(PYTORCH_JOBS):
        if not each["metadata"].get("deletionTimestamp"):
            _keep(store, each)


def _keep(store: Store, job: Object) -> None:
    there = {each["metadata"]["name"]: each for each in pods.of(store, job)}
    policy = job["spec"].get("runPolicy", {})
    if _over(job):
        _clean(store, there, policy.get("cleanPodPolicy", "None"))
        return
    if policy.get("suspend"):
        _clean(store, there, "All")
        _tell(store, job, "Suspended")
        return
    for role, spec in job["spec"]["pytorchReplicaSpecs"].items():
        for index in range(spec["replicas"]):
            _one(store, job, role.lower(), index, spec, there)
    leader = next((each for each in there.values() if each["metadata"]["labels"][_ROLE] == _LEADS), None)
    if any(pods.phase(each) == "Failed" for each in there.values()):
        _tell(store, job, "Failed")
    elif leader and pods.phase(leader) == "Succeeded":
        _tell(store, job, "Succeeded")
    elif leader and pods.phase(leader) == "Running":
        _tell(store, job, "Running")


def _one(  # noqa: PLR0917  (a copy's place)
    store: Store, job: Object, role: str, index: int, spec: Object, there: dict[str, Object]
) -> None:
    name = f"{job['metadata']['name']}-{role}-{index}"
    if name in there:
        return
    labels = {_NAME: job["metadata"]["name"], _ROLE: role, _INDEX: str(index)}

    def change(pod: Any) -> None:
        pod["spec"]["restartPolicy"] = spec.get("restartPolicy", "Never")

    if store.get(PODS, name, job["metadata"]["namespace"]) is None:
        pods.make(store, job, spec["template"], name, labels=labels, change=change)


def _clean(store: Store, there: dict[str, Object], policy: str) -> None:
    for each in there.values():
        if policy == "All" or (policy == "Running" and pods.lives(each)):
            store.delete(PODS, each)


def _over(job: Object) -> bool:
    return any(each["type"] in {"Succeeded", "Failed"} for each in job.get("status", {}).get("conditions", ()))


def _tell(store: Store, job: Object, condition: str) -> None:
    def change(each: Any) -> None:
        status = each.setdefault("status", {})
        status.setdefault("startTime", stamp(store.now()))
        known = [one for one in status.get("conditions", ()) if one["type"] != "Running"]
        if not any(one["type"] == condition for one in known):
            said = {"type": condition, "status": "True", "reason": f"PyTorchJob{condition}", "message": "",
                    "lastTransitionTime": stamp(store.now())}  # fmt: skip
            status["conditions"] = [*known, said]

    store.change(PYTORCH_JOBS, job, change)

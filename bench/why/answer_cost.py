"""CPU time of an answer of `pin why` in a cluster of 20,000 pods: reading the listings, and the diagnosis of each.

The answer reads what `platforms.kubernetes.diagnosis_reader` reads: the workload's pods in full, and as evidence the
nodes, the pods of those that have most room, or the pods of the project. Waiting for the API server takes no CPU.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from typing import Any, Generic, TypeVar

import msgspec

from bench.figures import Figure
from pincompute.api.service import PinterestService
from pincompute.kube.resource import Object
from pincompute.planning.diagnosis import explain
from pincompute.planning.diagnosis.capacity import Node, PodRequirements
from pincompute.planning.diagnosis.evidence import NO_EVIDENCE, Evidence
from pincompute.planning.diagnosis.free_capacity import MAX_COUNTED_NODES, ClusterCapacity
from pincompute.planning.kinds.planners import PLANNERS
from pincompute.planning.views.events import Event
from pincompute.planning.views.plan_preview import PlanningInputs
from pincompute.platforms.kubernetes.cluster_reader import LiveState

PODS, NODES, PROJECTS, REPLICAS = 20_000, 1_000, 10, 200
ROUNDS = 20
_BOUND_MS = 50.0
_NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
_EARLIER = "2026-01-31T11:50:00Z"
_UNSCHEDULABLE = f"0/{NODES} nodes are available: {NODES} Insufficient cpu."
_QUOTA = "exceeded quota: on-demand, requested: requests.cpu=1, used: requests.cpu=200, limited: requests.cpu=200"
_STATES: dict[str, Any] = {
    "ready": {"running": {"startedAt": _EARLIER}},
    "crash": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}},
    "image": {"waiting": {"reason": "ImagePullBackOff", "message": 'pulling "web:9": not found'}},
    "unschedulable": None,
    "quota": {"running": {"startedAt": _EARLIER}},
}


T = TypeVar("T")


class _List(msgspec.Struct, Generic[T]):
    items: list[T]


def figures() -> Iterator[Figure]:
    costs_ms = [cost for state in _STATES for cost in _costs_ms(state)]
    p99_ms = sorted(costs_ms)[int(len(costs_ms) * 0.99) - 1]
    label = f"ms of CPU for an answer in a cluster of {PODS:,} pods, P99 of {len(costs_ms)}"
    yield Figure("U6-cpu", label, [p99_ms], _BOUND_MS, "ms")


def _costs_ms(state: str) -> Iterator[float]:
    listing = _encoded([_pod(state, number) for number in range(REPLICAS)])
    evidence = _evidence_listings(state)
    for _ in range(ROUNDS):
        began_s = time.thread_time()
        _answer(state, listing, evidence)
        yield (time.thread_time() - began_s) * 1000


def _answer(state: str, listing: bytes, evidence: dict[str, bytes]) -> None:
    pods = msgspec.json.decode(listing)["items"]
    owner = msgspec.convert(_owner(), PinterestService)
    live = LiveState(_owner(), (_deployment(state),), tuple(pods))
    snapshot = live.snapshot(owner, PlanningInputs(), _NOW)
    first = explain.diagnose(snapshot, (), _NOW)
    events: list[Event] = []
    if "events" in evidence:
        events = _decoded(evidence["events"], Event)
        explain.diagnose(snapshot, events, _NOW)
    read = NO_EVIDENCE
    if "nodes" in evidence:
        capacity = ClusterCapacity(_decoded(evidence["nodes"], Node), _decoded(evidence["pods"], PodRequirements))
        read = Evidence(msgspec.convert(pods[0], PodRequirements), capacity)
    elif "project" in evidence:
        read = Evidence(project_pods=_decoded(evidence["project"], PodRequirements))
    if read is not NO_EVIDENCE:
        explain.diagnose(snapshot, events, _NOW, (), read)
    assert first.is_problem is (state != "ready"), (state, first)


def _evidence_listings(state: str) -> dict[str, bytes]:
    if state == "unschedulable":
        return {
            "nodes": _encoded([_node(number) for number in range(NODES)]),
            "pods": _encoded([_pod("ready", each) for each in range(MAX_COUNTED_NODES * PODS // NODES)]),
        }
    if state == "quota":
        return {"project": _encoded([_pod("ready", each) for each in range(PODS // PROJECTS)])}
    if state == "ready":
        return {}
    return {"events": _encoded([_event(number) for number in range(PODS // PROJECTS)])}


def _encoded(items: list[Object]) -> bytes:
    return msgspec.json.encode({"items": items})


def _decoded(listing: bytes, type_: type[Any]) -> list[Any]:
    return msgspec.json.decode(listing, type=_List[type_]).items  # type: ignore[valid-type]


def _owner() -> Object:
    metadata = {"name": "web", "namespace": "ads", "uid": "u", "generation": 1, "creationTimestamp": _EARLIER}
    status = {"observedGeneration": 1}
    spec = {"image": "web:1", "port": 8080, "replicas": REPLICAS}
    return {"kind": PinterestService.__name__, "metadata": metadata, "spec": spec, "status": status}


@cache
def _template_labels() -> Object:
    """Labels of the pods of the present revision, as the planner makes them."""
    owner = msgspec.convert(_owner(), PinterestService)
    plan = PLANNERS[owner.kind](LiveState(_owner()).snapshot(owner, PlanningInputs(), _NOW))
    deployment = next(each for each in plan.wanted if each["kind"] == "Deployment")
    labels: Object = deployment["spec"]["template"]["metadata"]["labels"]
    return labels


def _deployment(state: str) -> Object:
    conditions = [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": _QUOTA}]
    metadata = {"name": "web", "namespace": "ads", "uid": "d", "generation": 1, "creationTimestamp": _EARLIER}
    status = {"observedGeneration": 1, "conditions": conditions if state == "quota" else []}
    return {"kind": "Deployment", "metadata": metadata, "status": status, "spec": {}}


def _pod(state: str, number: int) -> Object:
    container = _STATES[state]
    is_ready = state == "ready"
    labels = _template_labels()
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": _EARLIER}
    if container is None:
        scheduled |= {"status": "False", "reason": "Unschedulable", "message": _UNSCHEDULABLE}
    conditions = [scheduled, {"type": "Ready", "status": str(is_ready), "lastTransitionTime": _EARLIER}]
    statuses = [{"name": "web", "image": "web:1", "ready": is_ready, "restartCount": 3, "state": container}]
    resources = {"requests": {"cpu": "1", "memory": "128Mi"}, "limits": {"memory": "128Mi"}}
    environment = [{"name": f"SETTING_{each}", "value": "some value of usual length"} for each in range(20)]
    spec = {"containers": [{"name": "web", "image": "web:1", "resources": resources, "env": environment}]}
    written: dict[str, Object] = {"f:value": {}}
    fields = {f"f:field{each}": written for each in range(40)}
    managed = [{"manager": "kubelet", "operation": "Update", "time": _EARLIER, "fieldsV1": fields}]
    metadata = {"name": f"web-{number}", "namespace": "ads", "uid": str(number), "labels": labels}
    return {
        "metadata": {**metadata, "creationTimestamp": _EARLIER, "managedFields": managed},
        "spec": {**spec, **({"nodeName": f"node-{number % NODES}"} if container else {})},
        "status": {"phase": "Running" if is_ready else "Pending", "startTime": _EARLIER if container else None,
                   "conditions": conditions, "containerStatuses": statuses if container else []},
    }  # fmt: skip


def _node(number: int) -> Object:
    labels = {"kubernetes.io/hostname": f"node-{number}", "topology.kubernetes.io/zone": f"zone-{number % 3}"}
    images = [{"names": [f"registry.example.com/image-{each}:1"], "sizeBytes": 1} for each in range(20)]
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": _EARLIER}
    status = {"allocatable": {"cpu": "20", "memory": "64Gi", "pods": "110"}, "conditions": [ready], "images": images}
    return {"metadata": {"name": f"node-{number}", "labels": labels}, "spec": {}, "status": status}


def _event(number: int) -> Object:
    regarding = {"kind": "Pod", "name": f"web-{number % REPLICAS}", "uid": str(number % REPLICAS)}
    metadata = {"name": f"web.{number}", "namespace": "ads", "creationTimestamp": _EARLIER}
    note = "Back-off restarting failed container web in pod web"
    return {"metadata": metadata, "type": "Warning", "reason": "BackOff", "note": note, "regarding": regarding}

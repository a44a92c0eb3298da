"""One answer of `pin why` costs few API requests, and reads nothing that its cause does not ask for."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from pincompute.api.service import PinterestService
from pincompute.api.workload_detail import Diagnosis
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.kube.request import Request
from pincompute.objects.times import format_time
from pincompute.planning.kinds.planners import PLANNERS
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.views.plan_preview import LOCAL_CLUSTER, PlanningInputs
from pincompute.platforms.kubernetes.workloads import WorkloadClient
from scripted_transport import ConnectedTransport

MOST_REQUESTS = 5
EDITED = [{"manager": "pin", "operation": "Apply", "time": "2026-01-31T11:59:00Z"}]
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
INPUTS = PlanningInputs()
CREATED = "2026-01-31T11:50:00Z"
READY = [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}]
SCARCE = "0/3 nodes are available: 3 Insufficient cpu."
UNSCHEDULABLE = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": SCARCE}]
CRASHED = {"terminated": {"exitCode": 1, "reason": "Error"}}
QUOTA = (
    'pods "web-1" is forbidden: exceeded quota: on-demand, requested: requests.cpu=2, '
    "used: requests.cpu=9, limited: requests.cpu=10"
)
REJECTED = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": QUOTA}
NODES = [{"metadata": {"name": f"n-{number}"}, "status": {"allocatable": {"cpu": "4"}}} for number in range(3)]


class StoredObjects(ConnectedTransport):
    """Answers reads with the given objects by their plural, without selectors."""

    def __init__(self, objects: dict[str, list[dict[str, Any]]]) -> None:
        self._objects = objects
        self.read: list[str] = []

    async def send(self, request: Request) -> bytes:
        self.read.append(request.resource)
        found = self._objects.get(request.resource, [])
        if request.verb == "list":
            return json.dumps({"metadata": {"resourceVersion": "1"}, "items": found}).encode()
        name = request.path.rpartition("/")[2]
        named = next((each for each in found if each["metadata"]["name"] == name), None)
        if named is None:
            raise NotFound(404, "NotFound", f"{request.about} not found")
        return json.dumps(named).encode()

    async def lines(self, request: Request, *, silence: float | None) -> AsyncGenerator[bytes]:
        yield await self.send(request)


def service(revision: int) -> dict[str, Any]:
    """A service that is not ready since its last edit."""
    lost = {"type": "Ready", "status": "False", "reason": "Progressing", "message": "", "lastTransitionTime": CREATED}
    metadata = {"name": "web", "namespace": "me", "uid": "u", "generation": 1, "creationTimestamp": CREATED}
    return {
        "kind": PinterestService.__name__,
        "metadata": {**metadata, "managedFields": EDITED},
        "spec": {"image": "web:1", "port": 8080},
        "status": {"observedGeneration": 1, "revision": revision, "conditions": [lost]},
    }


def deployment(**status: Any) -> dict[str, Any]:
    owner = msgspec.convert(service(1), PinterestService)
    plan = PLANNERS[owner.kind](Snapshot(owner, (), (), LOCAL_CLUSTER, NOW))
    wanted = next(each for each in plan.wanted if each["kind"] == "Deployment")
    return {**wanted, "metadata": {**wanted["metadata"], "creationTimestamp": CREATED}, "status": status}


def newest_pod(**status: Any) -> dict[str, Any]:
    """A pod of the newest revision of that service."""
    template = deployment()["spec"]["template"]
    metadata = {**template["metadata"], "name": "web-1", "namespace": "me", "creationTimestamp": CREATED}
    return {"metadata": metadata, "spec": template["spec"], "status": status}


async def explain(
    objects: dict[str, list[dict[str, Any]]], inputs: PlanningInputs | None = INPUTS
) -> tuple[Diagnosis, list[str]]:
    """The diagnosis of the service, and the resources that were read for it."""
    transport = StoredObjects(objects)
    async with Client(Access("http://cluster"), agent="test", transport=transport) as client:
        reader = WorkloadClient(client, None, lambda *_: PinterestService.__name__, lambda: inputs)
        return await reader.explain("me", "web"), transport.read


BASE = ["deployments", "pinterestservices", "pods"]


@pytest.mark.parametrize(
    ("state", "reason", "more"),
    [
        ({"pods": [newest_pod(conditions=READY)]}, "Available", ["events", "ingresses"]),
        ({"pods": [newest_pod(containerStatuses=[{"name": "web", "state": CRASHED}])]}, "ProgramFailed", ["events"]),
        (
            {"pods": [newest_pod(conditions=UNSCHEDULABLE)], "nodes": NODES},
            "Unschedulable",
            ["nodes", "pods"],
        ),
        ({"deployments": [deployment(conditions=[REJECTED])]}, "QuotaUsedUp", ["pods"]),
    ],
)
async def test_reads_only_what_the_cause_asks_for(
    state: dict[str, list[dict[str, Any]]], reason: str, more: list[str]
) -> None:
    objects = {"deployments": [deployment()], **state}
    found, read = await explain({**objects, "pinterestservices": [service(1)]})
    assert (found.reason, sorted(read)) == (reason, sorted([*BASE, *more]))
    assert len(read) <= MOST_REQUESTS
    # An earlier revision may have been healthy.
    found, read = await explain({**objects, "pinterestservices": [service(7)]})
    assert ("configmaps" in read) is found.is_problem
    assert len(read) <= MOST_REQUESTS + (reason == "Unschedulable")


async def test_problem_that_only_an_event_tells_asks_for_revisions_too() -> None:
    now = format_time(datetime.now(UTC))
    killing = {
        "metadata": {"name": "web-1.killing", "namespace": "me", "creationTimestamp": now},
        "regarding": {"kind": "Pod", "name": "web-1", "namespace": "me"},
        "reason": "Killing",
        "note": "Container web failed liveness probe, will be restarted",
        "deprecatedLastTimestamp": now,
    }
    container = {"name": "web", "ready": True, "restartCount": 2, "state": {"running": {"startedAt": now}}}
    state = {
        "deployments": [deployment()],
        "pinterestservices": [service(7)],
        "pods": [newest_pod(conditions=READY, containerStatuses=[container])],
    }
    found, read = await explain(state)
    assert (found.is_problem, "configmaps" in read) == (False, False)
    found, read = await explain({**state, "events": [killing]})
    assert (found.reason, "configmaps" in read) == ("ProbeFailed", True)


async def test_without_a_cache_the_shared_inputs_are_read_too() -> None:
    _, read = await explain(
        {"pinterestservices": [service(1)], "deployments": [deployment()], "pods": [newest_pod()]}, None
    )
    assert {"configmaps", "projects", "runtimes", "pinterestsidecars"} <= set(read)

"""Restarts because of a probe: the kubelet's events name the probe, and its error tells what to correct."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import pytest

from fault_corpus import CORPUS, build_pod, load_fault
from pincompute.api.service import PinterestService
from pincompute.api.status import find_condition
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import CRASH_LOOP, HEALTH_CHECK_FAILED, IMAGE_PULL_FAILED, QUOTA_USED_UP
from pincompute.planning.diagnosis.explain import diagnose
from pincompute.planning.diagnosis.probe_events import restart_by_probe, with_probe_error
from pincompute.planning.kinds.planners import PLANNERS
from pincompute.planning.observed_pods import Pod
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.views.events import Event
from pincompute.planning.views.history import RevisionRecord

BEFORE = "2026-01-31T11:00:00Z"
PROBE = {"httpGet": {"path": "/alive", "port": 9999}}
RUNNING = {"running": {"startedAt": "2026-01-31T11:59:50Z"}}
KILLED = "Container hello failed liveness probe, will be restarted"
NOT_FOUND = "Liveness probe failed: HTTP probe failed with statuscode: 404"
REFUSED = 'Liveness probe failed: Get "http://10.0.0.7:9999/alive": dial tcp 10.0.0.7:9999: connect: connection refused'
PLAIN = 'Liveness probe failed: Get "https://10.0.0.7:8080/": http: server gave HTTP response to HTTPS client'


def probed(restarts: int = 4, probe: dict[str, Any] = PROBE, *, ready: bool = False) -> Snapshot:
    """A service with one pod, whose program is probed and ends with 0 after each signal."""
    snapshot, _ = load_fault(CORPUS / "healthy" / "running.yaml")
    container = {"name": "hello", "livenessProbe": probe}
    spec = {"image": "hello:1", "port": 8080, "template": {"spec": {"containers": [container]}}}
    owner = {"metadata": {"name": "hello", "namespace": "me"}, "spec": spec}
    status = [{"name": "hello", "restartCount": restarts, "ready": ready, "state": RUNNING}]
    pod = build_pod({"containerStatuses": status}, "hello-1")
    return snapshot._replace(owner=msgspec.convert(owner, PinterestService), pods=(pod,))


def kubelet_event(note: str, reason: str = "Unhealthy", at: str = "2026-01-31T11:59:45Z") -> Event:
    regarding = {"kind": "Pod", "name": "hello-1"}
    content = {"metadata": {"name": note, "creationTimestamp": at}, "reason": reason, "note": note}
    return msgspec.convert({**content, "regarding": regarding}, Event)


@pytest.mark.parametrize(
    ("error", "next_"),
    [
        (NOT_FOUND, "correct the path of livenessProbe in the file, and: pin deploy FILE"),
        (
            REFUSED,
            "pin edit hello --set 'template.spec.containers[hello].livenessProbe.httpGet.port=8080'",
        ),
        (PLAIN, "pin edit hello --set 'template.spec.containers[hello].livenessProbe.httpGet.scheme=HTTP'"),
        (
            "Liveness probe failed: net/http: malformed HTTP response",
            (
                "pin edit hello --remove 'template.spec.containers[hello].livenessProbe.httpGet' "
                "--set 'template.spec.containers[hello].livenessProbe.tcpSocket.port=9999'"
            ),
        ),
        (
            "Liveness probe failed: context deadline exceeded",
            "pin edit hello --set 'template.spec.containers[hello].livenessProbe.timeoutSeconds=5'",
        ),
        ("Liveness probe failed: 1", "correct livenessProbe in the file, and: pin deploy FILE"),
    ],
)
def test_probe_is_the_cause_of_restarts(error: str, next_: str) -> None:
    found = restart_by_probe(
        probed(), Problem(CRASH_LOOP, "x"), [kubelet_event(KILLED, "Killing"), kubelet_event(error)]
    )
    assert found is not None
    assert found.what == ("the kubelet restarts the program, as its livenessProbe (HTTP GET /alive on port 9999) fails")
    assert found.note == f"{error.removeprefix('Liveness probe failed: ')}; restarted 4 times"
    assert (str(found.where), found.next) == ("pod hello-1 container hello", next_)


@pytest.mark.parametrize(
    ("restarts", "at", "is_reported"),
    [
        (2, "2026-01-31T11:59:45Z", True),
        (1, "2026-01-31T11:59:45Z", False),
        (9, "2026-01-31T11:40:00Z", False),
    ],
)
def test_program_that_is_ready_between_restarts_is_reported(restarts: int, at: str, is_reported: bool) -> None:
    found = restart_by_probe(probed(restarts, ready=True), None, [kubelet_event(KILLED, "Killing", at)])
    assert (found is not None) is is_reported


@pytest.mark.parametrize(
    ("edited", "is_caused_by_the_edit"), [("2026-01-31T11:59:00Z", True), ("2026-01-31T11:40:00Z", False)]
)
def test_rollback_is_offered_while_the_program_is_ready_between_restarts(
    edited: str, is_caused_by_the_edit: bool
) -> None:
    present = available_between_restarts()
    healthy = RevisionRecord(present.owner, 1, BEFORE, {"image": "hello:1", "port": 8080})
    found = diagnose(present, [kubelet_event(KILLED, "Killing")], datetime.fromisoformat(edited), [healthy])
    assert found.reason == "ProbeFailed"
    assert (found.next == "pin rollback hello --to 1") is is_caused_by_the_edit


def available_between_restarts() -> Snapshot:
    """The second revision of that service, with a pod that is ready at this moment, so that its goal is met."""
    restarting = probed(2, ready=True)
    goal = {"type": "Ready", "status": "True", "reason": "Available", "message": "", "lastTransitionTime": BEFORE}
    content = msgspec.to_builtins(restarting.owner)
    content["metadata"]["generation"] = 2
    content["spec"]["loadBalancer"] = {"internal": True}
    content["status"] = {"observedGeneration": 2, "revision": 2, "conditions": [goal]}
    owner = msgspec.convert(content, PinterestService)
    wanted = PLANNERS[owner.kind](restarting._replace(owner=owner)).wanted
    template = next(each["spec"]["template"] for each in wanted if each["kind"] == "Deployment")
    status = {
        "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}],
        "containerStatuses": [{"name": "hello", "restartCount": 2, "ready": True, "state": RUNNING}],
    }
    metadata = {**template["metadata"], "name": "hello-1", "namespace": "me"}
    pod = msgspec.convert({"metadata": metadata, "spec": template["spec"], "status": status}, Pod)
    present = restarting._replace(owner=owner, pods=(pod,))
    planned = find_condition(PLANNERS[owner.kind](present).status.conditions, owner.GOAL)
    assert planned is not None
    assert planned.status == "True", planned.message
    return present


def test_other_causes_and_other_kills_stay() -> None:
    events = [kubelet_event(KILLED, "Killing")]
    assert restart_by_probe(probed(), Problem(QUOTA_USED_UP, "q"), events) is None
    assert restart_by_probe(probed(), None, [kubelet_event("Stopping container hello", "Killing")]) is None
    assert restart_by_probe(probed()._replace(pods=()), None, events) is None


def test_unready_container_is_told_with_the_error_of_its_probe() -> None:
    error = "Readiness probe failed: HTTP probe failed with statuscode: 503"
    events = [kubelet_event(error), kubelet_event(NOT_FOUND)]
    where = Where(object="pod hello-1 container hello")
    found = with_probe_error(probed(), Problem(HEALTH_CHECK_FAILED, "x", where, "late"), events)
    assert found.note == f"late\n{error}"
    assert with_probe_error(probed(), Problem(IMAGE_PULL_FAILED, "x", where, "late"), events).note == "late"

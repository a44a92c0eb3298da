"""The answer of `pin why`: refinement by events, fallback to the status, and notes about drift."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from pincompute.api.daemon import PinterestDaemon
from pincompute.api.names import WORKLOAD_LABEL
from pincompute.api.service import PinterestService
from pincompute.api.stateful_set import PinterestStatefulSet
from pincompute.api.status import WorkloadStatus
from pincompute.api.structs import Metadata
from pincompute.base.problem import Problem
from pincompute.base.reasons import CLAIM_NOT_BOUND, CRASH_LOOP, POD_NOT_CREATED, POD_SETUP_SLOW, Reason
from pincompute.planning.diagnosis.evidence import refine_with_events
from pincompute.planning.diagnosis.explain import diagnose, diagnose_from_status
from pincompute.planning.diagnosis.failed_create import rejection_problem
from pincompute.planning.diagnosis.notes import collect_notes
from pincompute.planning.diagnosis.quotas import quota_exceeded_problem
from pincompute.planning.observed_pods import Pod
from pincompute.planning.snapshot import Native, Snapshot
from pincompute.planning.views.events import Event, EventScope, fold_events
from pincompute.planning.views.history import RevisionRecord
from pincompute.planning.views.plan_preview import LOCAL_CLUSTER

NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
AN_HOUR = timedelta(hours=1)


def owner(generation: int = 1, **status: Any) -> PinterestService:
    metadata = {"name": "hello", "namespace": "me", "uid": "owner-1", "generation": generation}
    whole = {"metadata": metadata, "spec": {"image": "hello:dev", "port": 8080}, "status": status}
    return msgspec.convert(whole, PinterestService)


def snapshot(of: PinterestService, *pods: Pod) -> Snapshot:
    return Snapshot(of, (), pods, LOCAL_CLUSTER, NOW)


def event(reason: str, note: str, name: str = "hello-1", *, at: str = "2026-01-31T11:59:00Z", **fields: Any) -> Event:
    regarding = {"kind": "Pod", "name": name, "uid": fields.pop("uid", "")}
    metadata = {"name": f"{name}.{reason}.{note}", "creationTimestamp": at}
    content = {"metadata": metadata, "type": "Warning", "reason": reason, "note": note, "regarding": regarding}
    return msgspec.convert({**content, **fields}, Event)


QUOTA = (
    'pods "hello-1" is forbidden: exceeded quota: on-demand, requested: requests.cpu=2, '
    "used: requests.cpu=9, limited: requests.cpu=10"
)
SECRET = 'MountVolume.SetUp failed for volume "keys" : secret "keys" not found'


@pytest.mark.parametrize(
    ("coarse", "reason", "note", "refined", "next_"),
    [
        (POD_NOT_CREATED, "FailedCreate", QUOTA, "QuotaUsedUp", "request less cpu"),
        (POD_SETUP_SLOW, "FailedMount", SECRET, "ConfigurationMissing", "kubectl create secret generic keys -n me"),
        (POD_SETUP_SLOW, "FailedMount", "timed out waiting", "PodSetupSlow", "coarse next"),
        (CLAIM_NOT_BOUND, "ProvisioningFailed", "no class 'fast'", "ClaimNotBound", "coarse next"),
        (CRASH_LOOP, "FailedMount", SECRET, "CrashLoop", "coarse next"),
    ],
)
def test_events_refine_vague_causes(coarse: Reason, reason: str, note: str, refined: str, next_: str) -> None:
    problem = Problem(coarse, "coarse", note="coarse note", next="coarse next")
    result = refine_with_events(snapshot(owner()), problem, [event(reason, note)])
    assert result.reason.code == refined
    assert next_ in result.next
    assert (result == problem) is (coarse is CRASH_LOOP)


def test_newest_warning_counts() -> None:
    problem = Problem(POD_SETUP_SLOW, "coarse")
    old = event("FailedMount", "old", at="2026-01-31T11:00:00Z")
    new = event("FailedMount", "new", at="2026-01-31T11:59:00Z")
    usual = event("FailedMount", "usual", at="2026-01-31T11:59:30Z", type="Normal")
    assert refine_with_events(snapshot(owner()), problem, [new, old, usual]).note == "new"


SECURITY = (
    'create Pod db-1 in StatefulSet db failed error: pods "db-1" is forbidden: '
    'violates PodSecurity "restricted:latest": '
    "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)"
)
EXISTS = 'create Pod db-1 in StatefulSet db failed error: object is being deleted: pods "db-1" already exists'
BEFORE, REFUSED, LATER = "2026-01-31T11:00:00Z", "2026-01-31T11:59:30Z", "2026-01-31T11:59:40Z"


def stateful_set(pod_count: int, created: str = "2026-01-31T11:00:00Z") -> Snapshot:
    """A stateful set with two wanted replicas, and this many pods."""
    metadata = {"name": "db", "namespace": "me", "uid": "owner-1", "generation": 2}
    status = {"observedGeneration": 2}
    whole = {"metadata": metadata, "spec": {"image": "db:1", "port": 5432, "replicas": 2}, "status": status}
    labels = {WORKLOAD_LABEL: "db"}
    pods = [
        {"metadata": {"name": f"db-{index}", "uid": f"pod-{index}", "labels": labels, "creationTimestamp": created}}
        for index in range(pod_count)
    ]
    found = msgspec.convert(whole, PinterestStatefulSet)
    return Snapshot(found, (), msgspec.convert(pods, tuple[Pod, ...]), LOCAL_CLUSTER, NOW)


def rejection(note: str, reason: str = "FailedCreate", at: str = REFUSED, **fields: Any) -> Event:
    return event(reason, note, "db-1", at=at, uid="owner-1", **fields)


@pytest.mark.parametrize(
    ("present", "events", "reason"),
    [
        (stateful_set(1), [rejection(SECURITY)], "PodSecurity"),
        # A quota may be used up for a moment only, so the first two rejections are ignored.
        (stateful_set(1), [rejection(QUOTA, deprecatedCount=2)], "Progressing"),
        (stateful_set(1), [rejection(QUOTA, deprecatedCount=3)], "QuotaUsedUp"),
        # The pod was created later, or exists, or its name is not free yet.
        (
            stateful_set(1),
            [rejection(SECURITY), rejection("made", "SuccessfulCreate", LATER, type="Normal")],
            "Progressing",
        ),
        (stateful_set(1, created=LATER), [rejection(SECURITY)], "Progressing"),
        (stateful_set(2), [rejection(SECURITY)], "Progressing"),
        (stateful_set(1), [rejection(EXISTS)], "Progressing"),
    ],
)
def test_event_explains_missing_replica(present: Snapshot, events: list[Event], reason: str) -> None:
    found = diagnose(present, events, None)
    assert (found.reason, found.is_problem) == (reason, reason != "Progressing")


def test_rollback_is_offered_before_the_status_follows() -> None:
    """The operator has not written yet that the last change broke the workload."""
    broken = stateful_set(1)
    ready = {"type": "Ready", "status": "True", "reason": "Available", "message": "", "lastTransitionTime": BEFORE}
    for generation in (1, 2):
        status = {"observedGeneration": generation, "revision": generation, "conditions": [ready]}
        known = msgspec.structs.replace(broken.owner, status=msgspec.convert(status, type(broken.owner.status)))
        healthy = RevisionRecord(known, 1, BEFORE, {"image": "db:0"})
        found = diagnose(broken._replace(owner=known), [rejection(SECURITY)], NOW - timedelta(seconds=5), [healthy])
        assert (found.reason, found.next) == ("PodSecurity", "pin rollback db --to 1")


def test_reports_silent_operator_after_a_grace_period() -> None:
    behind = snapshot(owner(2, observedGeneration=1))
    assert diagnose(behind, [], NOW - timedelta(seconds=60)).reason == "OperatorNotResponding"
    assert not diagnose(behind, [], NOW - timedelta(seconds=5)).is_problem
    assert not diagnose(snapshot(owner(2, observedGeneration=2)), [], NOW - timedelta(seconds=60)).is_problem


def test_paused_workload_is_no_problem() -> None:
    paused = msgspec.convert({"port": 8080, "image": "a", "rollout": {"paused": "ann"}}, type(owner().spec))
    kept = diagnose(snapshot(msgspec.structs.replace(owner(), spec=paused)), [], None)
    assert (kept.is_problem, kept.reason, kept.next) == (False, "Paused", "pin resume hello")


def test_reverted_edit_is_mentioned_for_ten_minutes() -> None:
    note = "manual edit of Deployment/hello reverted: spec.replicas was set to 5 instead of 1 by ann"
    for at, expected in (("2026-01-31T11:55:00Z", note), ("2026-01-31T11:45:00Z", "")):
        edit = event("DriftReverted", note, "hello", at=at, uid="owner-1")
        well = diagnose(snapshot(owner(1, observedGeneration=1)), [edit], None)
        assert (well.is_problem, well.note) == (False, expected)
    wrong = diagnose(
        snapshot(owner(2, observedGeneration=1)), [edit, event("DriftReverted", note, uid="owner-1")], NOW - AN_HOUR
    )
    assert (wrong.reason, wrong.note) == ("OperatorNotResponding", note)


def test_edits_that_are_made_again_and_again_are_counted() -> None:
    note = "manual edit of Deployment/hello reverted: spec.replicas was set to 5 instead of 1 by bot"
    edits = [
        event("DriftReverted", f"{note} {each}", "hello", at=f"2026-01-31T11:5{each}:00Z", uid="owner-1")
        for each in range(3, 7)
    ]
    found = diagnose(snapshot(owner(1, observedGeneration=1)), edits, None)
    assert found.note == (
        "edited and reverted 4 times since 2026-01-31T11:53:00Z, and the workload changes with every edit; "
        f"the last: {note} 6"
    )


def test_problem_found_while_applying_comes_from_the_status() -> None:
    foreign = {
        "type": "Ready",
        "status": "False",
        "reason": "NotOwned",
        "message": "Service/hello has another owner",
        "lastTransitionTime": "2026-01-31T11:00:00Z",
    }
    found = owner(1, observedGeneration=1, conditions=[foreign], next="rename it")
    for diagnosis in (diagnose(snapshot(found), [], None), diagnose_from_status(found)):
        assert (diagnosis.is_problem, diagnosis.reason, diagnosis.what, diagnosis.next) == (
            True,
            "NotOwned",
            "Service/hello has another owner",
            "rename it",
        )
    assert not diagnose_from_status(msgspec.structs.replace(found, status=WorkloadStatus())).is_problem


@pytest.mark.parametrize(
    ("generation", "reason", "wrong"),
    [
        (1, "NotOwned", True),
        (1, "QuotaUsedUp", True),
        (1, "DeletionStuck", True),
        (2, "NotOwned", False),
        (1, "CrashLoop", False),
    ],
)
def test_problem_found_while_applying_counts_even_if_all_replicas_are_ready(
    generation: int, reason: str, wrong: bool
) -> None:
    goal = {"type": "Ready", "status": "False", "reason": reason, "lastTransitionTime": "2026-01-31T11:00:00Z"}
    found = owner(generation, observedGeneration=1, conditions=[{**goal, "message": "words"}])
    well = msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, replicas=0))
    result = diagnose(snapshot(well), [], None)
    assert (result.is_problem, result.what == "words") == (wrong, wrong)


def test_folds_equal_events_with_the_newest_last() -> None:
    events = [
        event("BackOff", "Back-off restarting hello-7c9d8f6b5-x2x4q", "hello-7c9d8f6b5-x2x4q", deprecatedCount=3),
        event("BackOff", "Back-off restarting hello-7c9d8f6b5-b2b4c", "hello-7c9d8f6b5-b2b4c"),
        event("Killing", "token=hunter2", at="2026-01-31T11:00:00Z", type="Normal"),
    ]
    first, last = fold_events(events)
    assert (first.reason, first.note, first.warning, first.count) == ("Killing", "token=***", False, 1)
    assert (last.involved_object, last.note, last.warning, last.count) == (
        "2 Pods",
        "Back-off restarting hello-…",
        True,
        4,
    )


@pytest.mark.parametrize(
    ("name", "included"),
    [
        ("hello", True),
        ("hello-7c9d8f6b5", True),
        ("hello-7c9d8f6b5-x2x4q", True),
        ("hello-0", True),
        ("hello-two", False),
        ("hello-two-7c9d8f6b5", False),
        ("resize-1-1-3-x2x4q", True),
        ("resize-1-10-3-x2x4q", False),
    ],
)
def test_events_of_deleted_pods_are_recognized_by_name(name: str, included: bool) -> None:
    scope = EventScope(frozenset(("uid-1",)), frozenset(("hello", "resize-1-1")))
    assert scope.includes(event("A", "b", name)) is included
    assert scope.includes(event("A", "b", "anything", uid="uid-1"))


def test_reads_event_without_a_time() -> None:
    assert Event(metadata=Metadata(name="a")).last_seen == ""


def test_says_that_former_replicas_serve_while_the_newest_revision_does_not() -> None:
    former = msgspec.convert(
        {
            "metadata": {"name": "hello-1", "namespace": "me", "labels": {WORKLOAD_LABEL: "hello"}},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        },
        Pod,
    )
    paused = msgspec.convert({"port": 8080, "image": "a", "rollout": {"paused": "ann"}}, type(owner().spec))
    state = snapshot(msgspec.structs.replace(owner(), spec=paused), former)
    assert diagnose(state, [], None).note == "ready: 1/1 (0 new); former replicas still serve"
    assert diagnose(state._replace(pods=()), [], None).note == ""


@pytest.mark.parametrize(
    ("limited", "what"),
    [
        ("1", "quota preemptible of project me is smaller than one replica, which can therefore never start"),
        ("2", "quota preemptible of project me is used up"),
    ],
)
def test_says_that_a_request_above_the_quota_itself_never_fits(limited: str, what: str) -> None:
    amounts = f"requested: requests.cpu=1500m, used: requests.cpu=1, limited: requests.cpu={limited}"
    message = f"exceeded quota: preemptible, {amounts}"
    problem = quota_exceeded_problem(snapshot(owner()), message)
    assert problem
    assert problem.what == what


@pytest.mark.parametrize(
    ("running", "surge", "note"),
    [
        (1, 1, "1 of 1 pods used; a rollout needs 1 more than 1 replica"),
        (0, 1, "1 of 1 pods used"),
        (1, 0, "1 of 1 pods used"),
    ],
)
def test_says_that_a_rollout_needs_more_pods_than_replicas(running: int, surge: int, note: str) -> None:
    message = "exceeded quota: on-demand, requested: pods=1, used: pods=1, limited: pods=1"
    rolling = msgspec.convert({"port": 8080, "image": "a", "rollout": {"surge": surge}}, type(owner().spec))
    pod = msgspec.convert({"metadata": {"name": "hello-1", "labels": {WORKLOAD_LABEL: "hello"}}}, Pod)
    state = snapshot(msgspec.structs.replace(owner(), spec=rolling), *[pod] * running)
    assert rejection_problem(state, message).note == note


@pytest.mark.parametrize(
    ("scheduled", "selector", "note"),
    [
        (0, {"gpu": "a100"}, "no node has gpu=a100, which nodeSelector in the file requires"),
        (0, {}, "no node accepts it: there is none, or its affinity and tolerations in the file match none"),
        (2, {"gpu": "a100"}, ""),
    ],
)
def test_daemon_on_no_node_is_told_as_such(scheduled: int, selector: dict[str, str], note: str) -> None:
    metadata = {"name": "exporter", "namespace": "me", "uid": "owner-1", "generation": 1}
    spec = {"image": "exporter:1", "template": {"spec": {"nodeSelector": selector}}}
    daemon = msgspec.convert({"metadata": metadata, "spec": spec}, PinterestDaemon)
    owners = [{"uid": "owner-1", "controller": True}]
    status = {"observedGeneration": 1, "desiredNumberScheduled": scheduled}
    content = {"kind": "DaemonSet", "metadata": {**metadata, "uid": "set", "ownerReferences": owners}, "status": status}
    present = Snapshot(daemon, (msgspec.convert(content, Native),), (), LOCAL_CLUSTER, NOW)
    assert collect_notes(present, daemon.status, []) == ([note] if note else [])

"""The end of a workload's life, for every kind: announced, stopped without a new revision, postponed, deleted."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from pincompute.api.kinds import WORKLOADS
from pincompute.api.names import IMMUTABLE_HASH_ANNOTATION
from pincompute.api.status import find_condition
from pincompute.api.workload import Hold
from pincompute.objects.content import Object
from pincompute.objects.times import format_time
from pincompute.planning.diagnosis.explain import diagnose
from pincompute.planning.expiry import check_expires_later
from pincompute.planning.footprint import current_footprint
from pincompute.planning.notable_events import status_events
from pincompute.planning.observed_pods import Pod
from pincompute.planning.plan import Plan
from pincompute.planning.revision_number import keep_edits
from pincompute.planning.snapshot import Native, Snapshot
from pincompute.planning.views.summary import summarize
from runtime_builders import DONE_AT, build_part, build_resource, build_runtime, build_runtimes
from snapshot_strategies import NOW, new_snapshot, plan_snapshot, pod_templates_in, snapshot_after

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
SPECS: dict[str, Object] = {
    "PinterestService": {"port": 8080, "replicas": 3},
    "PinterestStatefulSet": {"port": 5432, "replicas": 3, "storage": "1Gi", "retention": {"deleted": "delete"}},
    "PinterestDaemon": {},
    "PinterestCronJob": {"schedule": "0 * * * *"},
    "PinterestJobSet": {"tasks": 3},
    "PinterestTrainingJob": {"workers": 2},
}
KINDS = sorted(WORKLOADS)
POD_CREATORS = ("Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job", "PyTorchJob", "TFJob")


def workload(kind: str = "PinterestService", expires: str = "30d", **spec: Any) -> Any:
    metadata = {"name": "web", "uid": "uid-of-the-owner", "generation": 1, "creationTimestamp": format_time(NOW)}
    body = {"image": "web:1", "expires": expires, **SPECS[kind], **spec}
    return build_resource({"kind": kind, "metadata": metadata, "spec": body})


def project(expires: str) -> Any:
    metadata = {"name": "me", "uid": "project-1", "creationTimestamp": format_time(NOW)}
    spec: Object = {"owner": "team-ads", "quota": {"on-demand": {}}, "expires": expires}
    return build_resource({"kind": "Project", "metadata": metadata, "spec": spec})


def at(owner: Any, now: datetime, **more: Any) -> Snapshot:
    return new_snapshot(owner)._replace(now=now, **more)


def pass_at(snapshot: Snapshot, now: datetime) -> tuple[Plan, Snapshot]:
    """The plan of a later time, and the snapshot after it was applied."""
    planned = plan_snapshot(snapshot._replace(now=now))
    return planned, snapshot_after(snapshot._replace(now=now), planned)


def with_spec(snapshot: Snapshot, **changes: Any) -> Snapshot:
    owner = snapshot.owner
    metadata = msgspec.structs.replace(owner.metadata, generation=owner.metadata.generation + 1)
    spec = msgspec.structs.replace(owner.spec, **changes)
    return snapshot._replace(owner=msgspec.structs.replace(owner, metadata=metadata, spec=spec))


def pods_wanted(native: Object) -> bool:
    """Whether Kubernetes creates pods for an object as it is wanted."""
    spec = native.get("spec", {})
    stopped = spec.get("replicas") == 0 or spec.get("suspend") or spec.get("runPolicy", {}).get("suspend")
    return any(pod_templates_in(native)) and not stopped


def revision_of(plan: Plan) -> int:
    status: Any = plan.status
    return int(status.revision)


def reasons(plan: Plan) -> dict[str, str]:
    return {each.type: each.reason for each in plan.status.conditions}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_no_pods_after_its_end_and_the_same_revision_again_when_postponed(kind: str) -> None:
    before, running = pass_at(at(workload(kind), NOW), NOW)
    assert any(pods_wanted(each) for each in before.wanted)
    stopped, rest = pass_at(running, NOW + 30 * DAY)
    assert not any(pods_wanted(each) for each in stopped.wanted)
    assert stopped.why
    assert stopped.why.reason.code == "Expired"
    assert revision_of(stopped) == revision_of(before) == 1
    again, _ = pass_at(with_spec(rest, expires="60d"), NOW + 31 * DAY)
    assert again.wanted == before.wanted
    assert revision_of(again) == 1
    assert "Expired" not in reasons(again)


@pytest.mark.parametrize("kind", KINDS)
def test_wakes_up_for_the_announcement_the_end_and_the_deletion(kind: str) -> None:
    owner = workload(kind, schedule="0 0 1 1 *") if kind == "PinterestCronJob" else workload(kind)
    planned, snapshot = pass_at(at(owner, NOW), NOW)
    now = NOW
    since: dict[str, timedelta] = {}
    # A training job wakes up for other reasons, too.
    while not planned.delete_owner:
        assert planned.wake_after_s
        now += timedelta(seconds=planned.wake_after_s)
        planned, snapshot = pass_at(snapshot, now)
        for type_ in reasons(planned):
            since.setdefault(type_, now - NOW)
    assert (since["ExpiresSoon"], since["Expired"], now - NOW) == (29 * DAY, 30 * DAY, 37 * DAY)


def test_nothing_is_deleted_before_it_was_stopped_for_the_grace_period() -> None:
    """The operator may have been down, or a date was mistyped with kubectl."""
    late = NOW + 300 * DAY
    planned, snapshot = pass_at(at(workload(), NOW), late)
    assert not planned.delete_owner
    just_before, snapshot = pass_at(snapshot, late + 7 * DAY - timedelta(seconds=1))
    assert not just_before.delete_owner
    assert pass_at(snapshot, late + 7 * DAY)[0].delete_owner


@pytest.mark.parametrize(("expires", "announced", "grace"), [("1h", HOUR / 2, HOUR), ("3d", 2 * DAY, 3 * DAY)])
def test_short_lives_have_short_notice_and_grace(expires: str, announced: timedelta, grace: timedelta) -> None:
    end = HOUR if expires == "1h" else 3 * DAY
    assert "ExpiresSoon" not in reasons(plan_snapshot(at(workload(expires=expires), NOW + announced - HOUR / 60)))
    assert "ExpiresSoon" in reasons(plan_snapshot(at(workload(expires=expires), NOW + announced)))
    _, snapshot = pass_at(at(workload(expires=expires), NOW), NOW + end)
    assert not pass_at(snapshot, NOW + end + grace - HOUR / 60)[0].delete_owner
    assert pass_at(snapshot, NOW + end + grace)[0].delete_owner


def test_project_is_an_upper_bound_and_deletes_nothing() -> None:
    for expires in ("", "60d"):
        snapshot = at(workload(expires=expires), NOW, project=project("10d"))
        stopped, snapshot = pass_at(snapshot, NOW + 10 * DAY)
        assert not any(pods_wanted(each) for each in stopped.wanted)
        assert stopped.why
        assert "with project me" in stopped.why.what
        assert "kubectl edit project me" in stopped.why.next
        assert not pass_at(snapshot, NOW + 50 * DAY)[0].delete_owner
    later = plan_snapshot(at(workload(expires="5d"), NOW + 5 * DAY, project=project("10d")))
    assert later.why
    assert "project" not in later.why.what


def test_claims_are_retained_while_expired() -> None:
    owner = workload("PinterestStatefulSet", retention={"deleted": "delete", "scaledDown": "delete"})
    policies = [
        each["spec"]["persistentVolumeClaimRetentionPolicy"]
        for now in (NOW, NOW + 30 * DAY)
        for each in plan_snapshot(at(owner, now)).wanted
        if each["kind"] == "StatefulSet"
    ]
    assert policies == [
        {"whenDeleted": "Delete", "whenScaled": "Delete"},
        {"whenDeleted": "Retain", "whenScaled": "Retain"},
    ]


def test_expired_cron_job_starts_no_manual_runs() -> None:
    owner = workload("PinterestCronJob")
    metadata = msgspec.structs.replace(owner.metadata, annotations={"pinterest.com/run-now": "1"})
    owner = msgspec.structs.replace(owner, metadata=metadata)
    kinds = [[each["kind"] for each in plan_snapshot(at(owner, NOW + days * DAY)).wanted] for days in (1, 30)]
    assert ["Job" in each for each in kinds] == [True, False]


def test_result_of_finished_work_stays() -> None:
    _, snapshot = pass_at(at(workload("PinterestJobSet"), NOW), NOW)
    goal, *others = snapshot.owner.status.conditions
    done = msgspec.structs.replace(goal, status="True", reason="Succeeded")
    status = msgspec.structs.replace(snapshot.owner.status, conditions=[done, *others])
    attempt = msgspec.structs.replace(status.attempts[0], ended=format_time(NOW))
    status = msgspec.structs.replace(status, attempts=[attempt], completed="0-2", done=3)
    snapshot = snapshot._replace(owner=msgspec.structs.replace(snapshot.owner, status=status))
    expired, _ = pass_at(snapshot, NOW + 30 * DAY)
    found = find_condition(expired.status.conditions, "Succeeded")
    assert found
    assert (found.status, found.reason) == ("True", "Succeeded")
    assert "Expired" in reasons(expired)


def test_events_tell_the_announcement_and_the_stop_once_each() -> None:
    _, snapshot = pass_at(at(workload(), NOW), NOW)
    told = []
    for now in (29 * DAY, 29.5 * DAY, 30 * DAY, 31 * DAY):
        owner = snapshot.owner
        planned, snapshot = pass_at(snapshot, NOW + now)
        told.append([(each.reason, each.warning) for each in status_events(owner, planned.status)])
    assert told == [[("ExpiresSoon", True)], [], [("Expired", True)], []]


def test_diagnosis_and_summary_say_when_and_what_to_do() -> None:
    _, snapshot = pass_at(at(workload(), NOW), NOW + 29 * DAY)
    soon = diagnose(snapshot._replace(now=NOW + 29 * DAY), (), None)
    assert "expires at 2026-03-02T12:00:00Z" in soon.note
    _, snapshot = pass_at(snapshot, NOW + 30 * DAY)
    found = diagnose(snapshot._replace(now=NOW + 30 * DAY), (), None)
    assert (found.is_problem, found.reason) == (False, "Expired")
    assert "to be deleted at 2026-03-09T12:00:00Z" in found.what
    assert found.next == "set a later time in expires, and: pin deploy web.yaml"
    assert summarize(snapshot.owner).reason == "Expired"


@pytest.mark.parametrize(
    ("expires", "created", "refused"),
    [
        ("", "", False),
        ("7d", "", False),
        ("7d", format_time(NOW - 6 * DAY), False),
        ("7d", format_time(NOW - 7 * DAY), True),
        ("2026-01-31", "", False),
        ("2026-01-30", "", True),
        ("2026-01-31T13:00:00+02:00", "", True),
        ("2026-01-31T13:00:00Z", "", False),
    ],
)
def test_time_in_the_past_is_refused_at_deploy(expires: str, created: str, refused: bool) -> None:
    proposed = workload(expires=expires)
    metadata = msgspec.structs.replace(proposed.metadata, creation_timestamp=created)
    stored = msgspec.structs.replace(proposed, metadata=metadata) if created else None
    problem = check_expires_later(proposed, stored, NOW)
    assert (problem is not None) == refused
    if problem:
        assert str(problem.where) == "me/web spec.expires"
        assert expires in problem.what
        assert "2026-01-31T12:00:00Z now" in problem.next


@pytest.mark.parametrize("expires", ["0h", "366d", "8785h", "2026-02-31", "2026-01-31T25:00:00Z"])
def test_invalid_field_changes_nothing_that_runs(expires: str) -> None:
    """A client of the Kubernetes API writes a workload without the desk's validation."""
    planned = plan_snapshot(at(workload(expires=expires), NOW + 400 * DAY))
    assert not planned.delete_owner
    assert planned.why in planned.problems
    # That of a project bounds nothing, and is reported there.
    running = plan_snapshot(at(workload(expires=""), NOW, project=project(expires)))
    assert not running.problems


def test_expired_project_cannot_be_overruled_by_edits() -> None:
    """A deployer may change any field of a workload, and not its project."""
    _, snapshot = pass_at(at(workload(), NOW, project=project("10d")), NOW + 10 * DAY)
    for changes in ({"replicas": 50}, {"expires": ""}, {"expires": "365d"}, {"image": "web:2"}):
        edited, _ = pass_at(with_spec(snapshot, **changes), NOW + 11 * DAY)
        assert not any(pods_wanted(each) for each in edited.wanted), changes


def test_rollback_keeps_the_present_end() -> None:
    owner = workload(expires="60d")
    assert keep_edits(owner.spec, workload(expires="30d", image="web:0").spec).expires == "60d"


@pytest.mark.parametrize("kind", KINDS)
def test_owner_and_cost_centre_of_a_project_restart_nothing(kind: str) -> None:
    first, second = project(""), project("")
    other = msgspec.structs.replace(second.spec, owner="team-shop", cost_centre="4711")
    plans = [
        plan_snapshot(at(workload(kind), NOW, project=each))
        for each in (first, msgspec.structs.replace(second, spec=other))
    ]
    templates = [[template for native in each.wanted for template in pod_templates_in(native)] for each in plans]
    assert templates[0] == templates[1] != []
    assert all(native["metadata"]["annotations"]["pinterest.com/owner"] == "team-shop" for native in plans[1].wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_expired_project_cannot_be_outlived_by_a_spec_that_no_plan_accepts(kind: str) -> None:
    _, running = pass_at(at(workload(kind, expires=""), NOW, project=project("10d")), NOW)
    assert any(each.kind in POD_CREATORS for each in running.natives)
    known = build_runtimes(build_part("logs-1"), build_runtime(1, "logs-1", done=DONE_AT))
    refused = with_spec(running, hold=Hold(runtime=999_999, until="2099-12-31"))._replace(runtimes=known)
    is_refused = kind in {"PinterestService", "PinterestStatefulSet", "PinterestCronJob"}
    assert bool(plan_snapshot(refused._replace(now=NOW + 9 * DAY)).problems) == is_refused
    stopped, after = pass_at(refused, NOW + 10 * DAY)
    assert not stopped.delete_owner
    assert stopped.why
    assert stopped.why.reason.code == "Expired"
    # Work that has begun keeps its runtime, so that its plan is not refused.
    suspended = {(each["kind"], each["metadata"]["name"]) for each in stopped.wanted if not pods_wanted(each)}
    left = [each for each in after.natives if each.kind in POD_CREATORS]
    alive = [each.kind for each in left if (each.kind, each.metadata.name) not in suspended]
    # The deletion of a stateful set could delete its claims.
    assert alive == (["StatefulSet"] if kind == "PinterestStatefulSet" else [])


@pytest.mark.parametrize("kind", ["PinterestJobSet", "PinterestTrainingJob"])
def test_work_of_another_version_is_stopped_too(kind: str) -> None:
    """Jobs with other immutable fields go on unchanged, and cannot be suspended."""
    _, running = pass_at(at(workload(kind), NOW), NOW)
    natives = tuple(
        with_annotation(each, IMMUTABLE_HASH_ANNOTATION, "other") if each.kind in POD_CREATORS else each
        for each in running.natives
    )
    running = running._replace(natives=natives, pods=(running_pod(running),))
    (job,) = [each for each in natives if each.kind in POD_CREATORS]
    later = plan_snapshot(running._replace(now=NOW + DAY))
    assert (job.kind, job.metadata.name) in later.retained
    stopped, after = pass_at(running, NOW + 30 * DAY)
    assert not any(pods_wanted(each) for each in stopped.wanted)
    assert not [each for each in after.natives if each.metadata.annotations.get(IMMUTABLE_HASH_ANNOTATION) == "other"]


def with_annotation(native: Native, name: str, value: str) -> Native:
    annotations = {**native.metadata.annotations, name: value}
    return msgspec.structs.replace(native, metadata=msgspec.structs.replace(native.metadata, annotations=annotations))


def running_pod(snapshot: Snapshot) -> Pod:
    """A pod of the work, as Kubernetes and Kubeflow label it."""
    (job,) = [each for each in snapshot.natives if each.kind in POD_CREATORS]
    labels = {
        "pinterest.com/workload": "web",
        "training.kubeflow.org/replica-type": "master",
        "training.kubeflow.org/replica-index": "0",
    }
    reference = {"kind": job.kind, "name": job.metadata.name, "uid": job.metadata.uid, "controller": True}
    metadata = {"name": "web-0", "uid": "pod-1", "labels": labels, "ownerReferences": [reference]}
    return msgspec.convert({"metadata": metadata, "status": {"phase": "Running"}}, Pod)


def test_stopped_service_holds_no_quota() -> None:
    assert current_footprint(at(workload(), NOW)).pods == 4
    assert current_footprint(at(workload(), NOW + 30 * DAY)).pods == 0

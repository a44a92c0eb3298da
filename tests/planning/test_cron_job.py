"""A cron job over time: manual runs are created once despite crashes, and the status stays correct."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from pincompute.api.change import Rerun
from pincompute.api.cron_job import CronJobStatus, PinterestCronJob
from pincompute.api.names import REVISION_ANNOTATION, TEMPLATE_HASH_LABEL
from pincompute.api.status import READY, find_condition
from pincompute.planning.batch.runs import MAX_MANUAL_RUN_NUMBER
from pincompute.planning.diff import diff
from pincompute.planning.edits import apply_change
from pincompute.planning.kinds.cron_job import plan
from pincompute.planning.observed_pods import OwnerReference, Pod
from pincompute.planning.plan import Plan
from pincompute.planning.snapshot import Cluster, Native, Snapshot
from pincompute.planning.steps import Create, Delete

NOON = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
LAPTOP = Cluster(name="main", domain="localhost", port=8080)
RUN_NOW = "pinterest.com/run-now"


def owner(run_now: str = "", status: CronJobStatus | None = None, **spec: Any) -> PinterestCronJob:
    document = {
        "kind": "PinterestCronJob",
        "metadata": {
            "name": "nightly",
            "namespace": "me",
            "uid": "owner-1",
            "generation": 1,
            "annotations": {RUN_NOW: run_now} if run_now else {},
        },
        "spec": {"image": "nightly:1.0", "schedule": "0 * * * *", **spec},
    }
    built = msgspec.convert(document, PinterestCronJob)
    return msgspec.structs.replace(built, status=status or CronJobStatus())


def snapshot(owner: PinterestCronJob, *natives: Native, now: datetime = NOON, pods: tuple[Pod, ...] = ()) -> Snapshot:
    return Snapshot(owner, natives, pods, LAPTOP, now)


def native(kind: str, name: str, **more: Any) -> Native:
    controller = {"kind": "PinterestCronJob", "name": "nightly", "uid": "owner-1", "controller": True}
    content = {
        "kind": kind,
        "metadata": {"name": name, "namespace": "me", "uid": name, "ownerReferences": [controller]},
        **more,
    }
    return msgspec.convert(content, Native)


def job(name: str, end: str = "", at: str = "2026-01-31T11:30:00Z") -> Native:
    conditions = [{"type": end, "status": "True", "lastTransitionTime": at}] if end else []
    completion = {"completionTime": at} if end == "Complete" else {}
    built = native("Job", name, status={"conditions": conditions, **completion})
    return msgspec.structs.replace(built, metadata=msgspec.structs.replace(built.metadata, creation_timestamp=at))


def cron_job(last: str = "2026-01-31T12:00:00Z") -> Native:
    return native("CronJob", "nightly", status={"lastScheduleTime": last})


def wanted_jobs(planned: Plan) -> list[str]:
    return [each["metadata"]["name"] for each in planned.wanted if each["kind"] == "Job"]


class World:
    """A cluster in which the operator may crash between any two steps, Jobs end, and users request runs."""

    def __init__(self) -> None:
        self.owner = owner(keep={"succeeded": 1, "failed": 1})
        self.jobs: dict[str, Native] = {}
        self.begun: list[str] = []

    def pass_(self, max_steps: int) -> None:
        """Do some steps of one pass; if not all of them and the status update, the operator crashes."""
        seen = snapshot(self.owner, cron_job(), *self.jobs.values())
        planned = plan(seen)
        steps = [each for each in diff("owner-1", seen.natives, planned).steps if self._is_of_a_run(each)]
        for step in steps[:max_steps]:
            match step:
                case Create(created):
                    name = created["metadata"]["name"]
                    assert name not in self.jobs
                    self.begun.append(name)
                    self.jobs[name] = job(name)
                case Delete():
                    del self.jobs[step.name]
        if max_steps > len(steps):
            self.owner = msgspec.structs.replace(self.owner, status=planned.status)

    def _is_of_a_run(self, step: Any) -> bool:
        return step.native["kind"] == "Job" if isinstance(step, Create) else getattr(step, "kind", "") == "Job"

    def request_run(self, number: int) -> None:
        annotations = {RUN_NOW: str(number)}
        metadata = msgspec.structs.replace(self.owner.metadata, annotations=annotations)
        self.owner = msgspec.structs.replace(self.owner, metadata=metadata)

    def end(self, outcome: str) -> None:
        self.jobs = {name: each if each.status.conditions else job(name, outcome) for name, each in self.jobs.items()}


events = st.one_of(
    st.tuples(st.just("pass_"), st.integers(0, 4)),
    st.tuples(st.just("request_run"), st.integers(1, 9)),
    st.tuples(st.just("end"), st.sampled_from(["Complete", "Failed"])),
)


@given(st.lists(events, max_size=40))
def test_manual_run_is_created_once_despite_crashes(history: list[tuple[str, Any]]) -> None:
    world = World()
    requested = 0
    for event, argument in history:
        getattr(world, event)(argument)
        requested = argument if event == "request_run" else requested
    assert len(world.begun) == len(set(world.begun))
    for _ in range(3):
        world.pass_(99)
        world.end("Complete")
    assert len(world.begun) == len(set(world.begun))
    assert f"nightly-now-{requested}" in world.begun or requested <= world.owner.status.last_run_now


class PendingRuns(World):
    """The same, with manual runs that wait for a node while users change the program or pause the schedule."""

    def __init__(self) -> None:
        super().__init__()
        self.owner = owner(overlap="allow")
        self.pods: dict[str, Pod] = {}

    def pass_(self, max_steps: int) -> None:
        seen = snapshot(self.owner, cron_job(), *self.jobs.values(), pods=tuple(self.pods.values()))
        planned = plan(seen)
        steps = [each for each in diff("owner-1", seen.natives, planned).steps if self._is_of_a_run(each)]
        for step in steps[:max_steps]:
            match step:
                case Create(created):
                    name, generation = created["metadata"]["name"], str(self.owner.metadata.generation)
                    self.begun.append(name)
                    self.jobs[name] = of_revision(job(name), generation)
                    labels = created["spec"]["template"]["metadata"]["labels"]
                    self.pods[name] = pending_pod(name, labels[TEMPLATE_HASH_LABEL])
                case Delete():
                    del self.jobs[step.name]
                    del self.pods[step.name]
        if max_steps > len(steps):
            self.owner = msgspec.structs.replace(self.owner, status=planned.status)

    def request_run(self, number: int) -> None:
        if self.owner.status.last_run_now == number - 1:
            super().request_run(number)

    def change_program(self, image: str) -> None:
        self._edit(image=image)

    def pause(self, by: str) -> None:
        self._edit(suspended=by)

    def _edit(self, **fields: str) -> None:
        metadata = self.owner.metadata
        newer = msgspec.structs.replace(metadata, generation=metadata.generation + 1)
        spec = msgspec.structs.replace(self.owner.spec, **fields)
        self.owner = msgspec.structs.replace(self.owner, metadata=newer, spec=spec)


def of_revision(run: Native, generation: str) -> Native:
    annotations = {**run.metadata.annotations, REVISION_ANNOTATION: generation}
    return msgspec.structs.replace(run, metadata=msgspec.structs.replace(run.metadata, annotations=annotations))


def pending_pod(run: str, template_hash: str) -> Pod:
    content = {
        "metadata": {
            "name": f"{run}-pod",
            "namespace": "me",
            "labels": {TEMPLATE_HASH_LABEL: template_hash},
            "ownerReferences": [{"uid": run, "controller": True}],
        },
        "status": {"phase": "Pending"},
    }
    return msgspec.convert(content, Pod)


changes = st.one_of(
    st.tuples(st.just("pass_"), st.integers(0, 4)),
    st.tuples(st.just("request_run"), st.integers(1, 4)),
    st.tuples(st.just("change_program"), st.sampled_from(["nightly:1.0", "nightly:2.0"])),
    st.tuples(st.just("pause"), st.sampled_from(["", "ann"])),
)


@given(st.lists(changes, max_size=40))
def test_pending_manual_run_survives_changes_and_crashes(history: list[tuple[str, Any]]) -> None:
    runs = PendingRuns()
    for event, argument in history:
        getattr(runs, event)(argument)
    for _ in range(5):
        runs.pass_(99)
    assert set(runs.jobs) == set(runs.begun)
    assert runs.owner.status.superseded_runs == []
    hashes = {each.template_hash for each in runs.pods.values()}
    assert len(hashes) <= 1, "a run waits with a former program"


def test_pause_leaves_a_pending_manual_run_alone() -> None:
    runs = PendingRuns()
    runs.request_run(1)
    for by in ("ann", ""):
        runs.pass_(99)
        runs.pause(by)
        runs.pass_(99)
    assert runs.begun == ["nightly-now-1"]
    assert list(runs.jobs) == ["nightly-now-1"]


def test_manual_run_is_not_repeated_after_its_job_is_deleted_or_the_number_decreases() -> None:
    done = CronJobStatus(last_run_now=3)
    for run_now in ("", "2", "3"):
        assert wanted_jobs(plan(snapshot(owner(run_now, done), cron_job()))) == []
    assert wanted_jobs(plan(snapshot(owner("4", done), cron_job()))) == ["nightly-now-4"]


def test_suspended_cron_job_can_run_manually() -> None:
    assert wanted_jobs(plan(snapshot(owner("1", suspended="ann: broken"), cron_job()))) == ["nightly-now-1"]


@pytest.mark.parametrize(("overlap", "expected"), [("forbid", []), ("replace", []), ("allow", ["nightly-now-1"])])
def test_manual_run_waits_for_active_run_unless_overlap_is_allowed(overlap: str, expected: list[str]) -> None:
    active = native("Job", "nightly-29497620")
    controller = OwnerReference(kind="CronJob", name="nightly", uid="cron-1", controller=True)
    metadata = msgspec.structs.replace(active.metadata, owner_references=(controller,))
    active = msgspec.structs.replace(active, metadata=metadata)
    assert wanted_jobs(plan(snapshot(owner("1", overlap=overlap), cron_job(), active))) == expected


@pytest.mark.parametrize("annotation", ["now", "-1", "0", "1.5", " 1", str(MAX_MANUAL_RUN_NUMBER + 1), "٣"])
def test_rejects_invalid_run_number(annotation: str) -> None:
    planned = plan(snapshot(owner(annotation), cron_job()))
    assert wanted_jobs(planned) == []
    assert planned.why is not None
    assert planned.why.reason.code == "DocumentInvalid"
    assert planned.why.next == "pin rerun nightly"
    fixed: Any = apply_change(owner(annotation), Rerun()).workload
    assert wanted_jobs(plan(snapshot(fixed, cron_job()))) != []


def test_next_runs_stay_correct_with_one_write_per_run() -> None:
    """The operator wakes up on time, and the only change it then writes is the list of next times."""
    now, status, writes = NOON, CronJobStatus(), 0
    for _ in range(200):
        last = now.replace(second=0, microsecond=0).isoformat()
        planned = plan(snapshot(owner(status=status, schedule="* * * * *"), cron_job(last), now=now))
        assert isinstance(planned.status, CronJobStatus)
        assert all(datetime.fromisoformat(each) > now for each in planned.status.next_runs)
        assert len(planned.status.next_runs) == 5
        writes += planned.status != status
        status = planned.status
        assert planned.wake_after_s is not None
        now += timedelta(seconds=planned.wake_after_s)
    minutes = (now - NOON).total_seconds() / 60
    assert writes <= minutes + 1


def test_reports_late_run_after_one_minute() -> None:
    status = CronJobStatus(effective_schedule="0 * * * * UTC", effective_since="2026-01-31T00:00:00Z")
    late = {}
    for seconds in (0, 59, 60):
        seen = snapshot(owner(status=status), cron_job("2026-01-31T11:00:00Z"), now=NOON + timedelta(seconds=seconds))
        late[seconds] = plan(seen)
    assert [bool(each.why) for each in late.values()] == [False, False, True]
    assert late[0].wake_after_s == 60
    assert late[59].wake_after_s == 1


def test_does_not_report_runs_due_before_the_schedule_took_effect() -> None:
    """Runs that were due while the cron job was suspended are not reported."""
    before = CronJobStatus(effective_schedule="", effective_since="2026-01-30T00:00:00Z")
    planned = plan(snapshot(owner(status=before), cron_job("2026-01-30T00:00:00Z"), now=NOON + timedelta(minutes=30)))
    assert planned.why is None


def ready(planned: Plan) -> tuple[str, str]:
    condition = find_condition(planned.status.conditions, READY)
    assert condition is not None
    return condition.status, condition.reason


def test_ready_depends_on_the_last_finished_run() -> None:
    at = "2026-01-31T11:{}:00Z".format
    good, bad = job("nightly-now-1", "Complete", at(10)), job("nightly-now-2", "Failed", at(20))
    assert ready(plan(snapshot(owner(), cron_job(), good))) == ("True", "Available")
    assert ready(plan(snapshot(owner(), cron_job(), good, bad))) == ("False", "RunFailed")
    better = job("nightly-now-3", "Complete", at(30))
    assert ready(plan(snapshot(owner(), cron_job(), good, bad, better))) == ("True", "Available")


def test_run_whose_program_has_completed_is_no_problem() -> None:
    """Sidecars may run a moment longer than the program."""
    active = job("nightly-now-1")
    terminated = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": "2026-01-31T11:59:00Z"}}
    content = {
        "metadata": {
            "name": "nightly-now-1-a",
            "labels": {"pinterest.com/workload": "nightly"},
            "ownerReferences": [{"uid": active.metadata.uid, "controller": True}],
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Initialized", "status": "True"}],
            "containerStatuses": [{"name": "nightly", "image": "nightly:1.0", "state": terminated}],
        },
    }
    planned = plan(snapshot(owner(), cron_job(), active, pods=(msgspec.convert(content, Pod),)))
    assert planned.why is None

"""A periodic job over time: runs by hand are made once wherever the operator ends, and its status stays true."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pincompute.api.change import Rerun
from pincompute.api.cron_job import CronJobStatus, PinterestCronJob
from pincompute.api.status import READY, condition
from pincompute.planning.batch.runs import MOST
from pincompute.planning.cron_job import plan
from pincompute.planning.diff import diff
from pincompute.planning.people.edits import edit
from pincompute.planning.plan import Plan
from pincompute.planning.snapshot import Cluster, Native, Pod, Snapshot
from pincompute.planning.steps import Create, Delete

NOON = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
LAPTOP = Cluster(name="main", domain="localhost", port=8080)
RUN_NOW = "pinterest.com/run-now"


def owner(ask: str = "", status: CronJobStatus | None = None, **spec: Any) -> PinterestCronJob:
    document = {
        "kind": "PinterestCronJob",
        "metadata": {
            "name": "nightly",
            "namespace": "me",
            "uid": "owner-1",
            "generation": 1,
            "annotations": {RUN_NOW: ask} if ask else {},
        },
        "spec": {"image": "nightly:1.0", "schedule": "0 * * * *", **spec},
    }
    found = msgspec.convert(document, PinterestCronJob)
    return msgspec.structs.replace(found, status=status or CronJobStatus())


def snapshot(owner: PinterestCronJob, *natives: Native, now: datetime = NOON, pods: tuple[Pod, ...] = ()) -> Snapshot:
    return Snapshot(owner, natives, pods, LAPTOP, now)


def native(kind: str, name: str, **more: Any) -> Native:
    by = {"kind": "PinterestCronJob", "name": "nightly", "uid": "owner-1", "controller": True}
    content = {
        "kind": kind,
        "metadata": {"name": name, "namespace": "me", "uid": name, "ownerReferences": [by]},
        **more,
    }
    return msgspec.convert(content, Native)


def job(name: str, end: str = "", at: str = "2026-01-31T11:30:00Z") -> Native:
    conditions = [{"type": end, "status": "True", "lastTransitionTime": at}] if end else []
    done = {"completionTime": at} if end == "Complete" else {}
    found = native("Job", name, status={"conditions": conditions, **done})
    return msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, creation_timestamp=at))


def cron_job(last: str = "2026-01-31T12:00:00Z") -> Native:
    return native("CronJob", "nightly", status={"lastScheduleTime": last})


def made(planned: Plan) -> list[str]:
    return [each["metadata"]["name"] for each in planned.wanted if each["kind"] == "Job"]


class World:
    """A cluster in which the operator may end between any two of its acts; Jobs end, and people ask."""

    def __init__(self) -> None:
        self.owner = owner(keep={"succeeded": 1, "failed": 1})
        self.jobs: dict[str, Native] = {}
        self.begun: list[str] = []

    def pass_(self, acts: int) -> None:
        """So many of the acts of one pass, and then the operator ends."""
        seen = snapshot(self.owner, cron_job(), *self.jobs.values())
        planned = plan(seen)
        steps = [each for each in diff("owner-1", seen.natives, planned).steps if self._is_of_a_run(each)]
        for step in steps[:acts]:
            match step:
                case Create(made):
                    name = made["metadata"]["name"]
                    assert name not in self.jobs
                    self.begun.append(name)
                    self.jobs[name] = job(name)
                case Delete():
                    del self.jobs[step.name]
        if acts > len(steps):
            self.owner = msgspec.structs.replace(self.owner, status=planned.status)

    def _is_of_a_run(self, step: Any) -> bool:
        return step.native["kind"] == "Job" if isinstance(step, Create) else getattr(step, "kind", "") == "Job"

    def ask(self, number: int) -> None:
        annotations = {RUN_NOW: str(number)}
        metadata = msgspec.structs.replace(self.owner.metadata, annotations=annotations)
        self.owner = msgspec.structs.replace(self.owner, metadata=metadata)

    def end(self, how: str) -> None:
        self.jobs = {name: each if each.status.conditions else job(name, how) for name, each in self.jobs.items()}


moves = st.one_of(
    st.tuples(st.just("pass_"), st.integers(0, 4)),
    st.tuples(st.just("ask"), st.integers(1, 9)),
    st.tuples(st.just("end"), st.sampled_from(["Complete", "Failed"])),
)


@given(st.lists(moves, max_size=40))
def test_a_run_by_hand_is_made_once_wherever_the_operator_ends(history: list[tuple[str, Any]]) -> None:
    world = World()
    asked = 0
    for move, argument in history:
        getattr(world, move)(argument)
        asked = argument if move == "ask" else asked
    assert len(world.begun) == len(set(world.begun))
    for _ in range(3):
        world.pass_(99)
        world.end("Complete")
    assert len(world.begun) == len(set(world.begun))
    assert f"nightly-now-{asked}" in world.begun or asked <= world.owner.status.ran_now


def test_what_was_run_is_not_run_again_when_its_job_is_gone_or_the_number_goes_back() -> None:
    done = CronJobStatus(ran_now=3)
    assert [made(plan(snapshot(owner(ask, done), cron_job()))) for ask in ("", "2", "3")] == [[], [], []]
    assert made(plan(snapshot(owner("4", done), cron_job()))) == ["nightly-now-4"]


def test_a_suspended_one_still_runs_by_hand() -> None:
    assert made(plan(snapshot(owner("1", suspended="ann: broken"), cron_job()))) == ["nightly-now-1"]


@pytest.mark.parametrize(("overlap", "expected"), [("forbid", []), ("replace", []), ("allow", ["nightly-now-1"])])
def test_a_run_by_hand_waits_for_another_unless_both_may_run(overlap: str, expected: list[str]) -> None:
    going = native("Job", "nightly-29497620")
    maker = {"kind": "CronJob", "name": "nightly", "uid": "cron-1", "controller": True}
    metadata = msgspec.structs.replace(going.metadata, owner_references=[maker])
    going = msgspec.structs.replace(going, metadata=metadata)
    assert made(plan(snapshot(owner("1", overlap=overlap), cron_job(), going))) == expected


@pytest.mark.parametrize("said", ["now", "-1", "0", "1.5", " 1", str(MOST + 1), "٣"])
def test_what_is_no_number_is_told_and_nothing_runs(said: str) -> None:
    planned = plan(snapshot(owner(said), cron_job()))
    assert made(planned) == []
    assert planned.why is not None
    assert planned.why.reason.code == "DocumentInvalid"
    assert planned.why.next == "pin rerun nightly"
    cured: Any = edit(owner(said), Rerun()).workload
    assert made(plan(snapshot(cured, cron_job()))) != []


def test_the_next_times_stay_true_with_one_write_a_run() -> None:
    """The operator wakes by itself, and all it then has to say is that the times have moved on."""
    now, status, writes = NOON, CronJobStatus(), 0
    for _ in range(200):
        last = now.replace(second=0, microsecond=0).isoformat()
        planned = plan(snapshot(owner(status=status, schedule="* * * * *"), cron_job(last), now=now))
        assert isinstance(planned.status, CronJobStatus)
        assert all(datetime.fromisoformat(each) > now for each in planned.status.next_runs)
        assert len(planned.status.next_runs) == 5
        writes += planned.status != status
        status = planned.status
        assert planned.wake_after is not None
        now += timedelta(seconds=planned.wake_after)
    minutes = (now - NOON).total_seconds() / 60
    assert writes <= minutes + 1


def test_a_late_run_is_told_after_a_minute_and_not_before() -> None:
    status = CronJobStatus(follows="0 * * * * UTC", since="2026-01-31T00:00:00Z")
    late = {}
    for seconds in (0, 59, 60):
        seen = snapshot(owner(status=status), cron_job("2026-01-31T11:00:00Z"), now=NOON + timedelta(seconds=seconds))
        late[seconds] = plan(seen)
    assert [bool(each.why) for each in late.values()] == [False, False, True]
    assert late[0].wake_after == 60
    assert late[59].wake_after == 1


def test_times_before_it_followed_its_schedule_are_not_missed() -> None:
    """What was due while it was suspended was not meant to run."""
    before = CronJobStatus(follows="", since="2026-01-30T00:00:00Z")
    planned = plan(snapshot(owner(status=before), cron_job("2026-01-30T00:00:00Z"), now=NOON + timedelta(minutes=30)))
    assert planned.why is None


def ready(planned: Plan) -> tuple[str, str]:
    found = condition(planned.status.conditions, READY)
    assert found is not None
    return found.status, found.reason


def test_it_is_ready_by_the_last_run_that_ended() -> None:
    at = "2026-01-31T11:{}:00Z".format
    good, bad = job("nightly-now-1", "Complete", at(10)), job("nightly-now-2", "Failed", at(20))
    assert ready(plan(snapshot(owner(), cron_job(), good))) == ("True", "Available")
    assert ready(plan(snapshot(owner(), cron_job(), good, bad))) == ("False", "RunFailed")
    better = job("nightly-now-3", "Complete", at(30))
    assert ready(plan(snapshot(owner(), cron_job(), good, bad, better))) == ("True", "Available")


def test_a_run_whose_program_is_done_is_not_blamed_for_ending() -> None:
    """What stands beside the program may take a moment longer."""
    going = job("nightly-now-1")
    terminated = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": "2026-01-31T11:59:00Z"}}
    content = {
        "metadata": {
            "name": "nightly-now-1-a",
            "labels": {"pinterest.com/workload": "nightly"},
            "ownerReferences": [{"uid": going.metadata.uid, "controller": True}],
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Initialized", "status": "True"}],
            "containerStatuses": [{"name": "nightly", "image": "nightly:1.0", "state": terminated}],
        },
    }
    planned = plan(snapshot(owner(), cron_job(), going, pods=(msgspec.convert(content, Pod),)))
    assert planned.why is None

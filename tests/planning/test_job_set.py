"""A batch from start to end: despite crashes and changes no Job is created twice and no result is lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from pincompute.api.cancellation import Cancellation
from pincompute.api.job_set import PinterestJobSet
from pincompute.api.job_set_status import JobSetStatus, TaskFailure
from pincompute.api.task import Attempt
from pincompute.objects.content import Object
from pincompute.objects.number_sets import format_numbers, parse_numbers
from pincompute.planning.batch import attempts
from pincompute.planning.batch.failures import MAX_FAILURE_GROUPS, FailureCause, group_failures, recorded_failures
from pincompute.planning.diff import diff
from pincompute.planning.kinds import job_set
from pincompute.planning.plan import Plan
from pincompute.planning.revision_number import MUTABLE_JOB_SET_FIELDS, revision_content
from pincompute.planning.snapshot import Cluster, Native, NativeCondition, NativeStatus, Snapshot
from pincompute.planning.steps import Apply, Create, Delete

START = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
CLUSTER = Cluster(name="main", domain="localhost", port=8080)
COMPLETE = NativeCondition(type="Complete", status="True")
SUSPENDED = NativeCondition(type="Suspended", status="True")
FAILED = NativeCondition(type="Failed", status="True", reason="FailedIndexes")


def owner(generation: int = 1, status: JobSetStatus = JobSetStatus(), **spec: Any) -> PinterestJobSet:  # noqa: B008
    document = {
        "kind": "PinterestJobSet",
        "metadata": {"name": "resize", "namespace": "me", "uid": "owner-1", "generation": generation},
        "spec": {"image": "resize:1", **({} if "items" in spec else {"tasks": 6}), **spec},
    }
    return msgspec.structs.replace(msgspec.convert(document, PinterestJobSet), status=status)


@pytest.mark.parametrize(
    "spec",
    [
        {"attempts": [{"tasks": ",".join(["0-999999"] * 400)}]},
        {
            "tasks": 10_000,
            "claims": [{"name": "a", "path": "/a", "size": "1Gi", "retained": True}],
            "command": ["a" * 1_000],
        },
    ],
    ids=["numbers", "jobs"],
)
def test_job_set_that_costs_too_much_is_refused(spec: dict[str, Any]) -> None:
    """The desk refuses it, too, but a client of the Kubernetes API can write it."""
    planned = job_set.plan(Snapshot(owner(**spec), (), (), CLUSTER, START))
    assert [each.reason.code for each in planned.problems] == ["DocumentInvalid"]
    assert planned.wanted == ()


@dataclass
class World:
    """A cluster with one batch. Steps are applied; the status is written unless the operator crashes."""

    owner: PinterestJobSet
    now: datetime = START
    natives: dict[tuple[str, str], Native] = field(default_factory=dict)
    bodies: dict[str, Object] = field(default_factory=dict)
    """Spec of each Job as created."""
    created: Counter[str] = field(default_factory=Counter)
    """Number of times that each Job was created."""

    def plan(self) -> Plan:
        return job_set.plan(Snapshot(self.owner, tuple(self.natives.values()), (), CLUSTER, self.now))

    def act(self, *, crash: bool = False) -> Plan:
        planned = self.plan()
        for step in diff("owner-1", tuple(self.natives.values()), planned).steps:
            match step:
                case Create(native) | Apply(native):
                    self._write(native)
                case Delete(kind, name):
                    del self.natives[kind, name]
                case other:
                    raise AssertionError(other)
        if not crash:
            assert isinstance(planned.status, JobSetStatus)
            self.owner = msgspec.structs.replace(self.owner, status=planned.status)
        return planned

    def _write(self, native: Object) -> None:
        key = native["kind"], native["metadata"]["name"]
        before = self.natives.get(key)
        if native["kind"] == "Job":
            if before is None:
                self.created[key[1]] += 1
            else:
                for name in ("template", "completions", "backoffLimitPerIndex", "podFailurePolicy", "successPolicy"):
                    assert native["spec"].get(name) == self.bodies[key[1]].get(name)
            self.bodies[key[1]] = native["spec"]
        stored = msgspec.convert({**native, "metadata": {**native["metadata"], "uid": f"uid-{key[1]}"}}, Native)
        self.natives[key] = msgspec.structs.replace(stored, status=before.status if before else NativeStatus())

    def run(self, count: int, *, failing: bool = False) -> None:
        """Act as Kubernetes: some more indexes of each Job end."""
        for (kind, name), native in list(self.natives.items()):
            body = self.bodies.get(name, {})
            if kind != "Job" or attempts.is_finished(native):
                continue
            if body["suspend"]:
                self.natives[kind, name] = _with_conditions(native, SUSPENDED)
                continue
            done, failed = parse_numbers(native.status.completed_indexes), parse_numbers(native.status.failed_indexes)
            ending = [each for each in range(body["completions"]) if each not in done | failed][:count]
            done, failed = (done, failed | set(ending)) if failing else (done | set(ending), failed)
            ended = [FAILED if failed else COMPLETE] if len(done | failed) == body["completions"] else []
            status = NativeStatus(
                completed_indexes=format_numbers(done), failed_indexes=format_numbers(failed), conditions=ended
            )
            self.natives[kind, name] = msgspec.structs.replace(native, status=status)


def _with_conditions(native: Native, *conditions: NativeCondition) -> Native:
    return msgspec.structs.replace(native, status=msgspec.structs.replace(native.status, conditions=[*conditions]))


EVENTS = st.lists(
    st.sampled_from(["pass", "crash", "run", "fail", "limit", "suspend", "resume", "cancel", "rerun", "hour", "week"]),
    max_size=40,
)


@given(EVENTS)
def test_no_job_is_created_twice_and_no_result_is_lost(events: list[str]) -> None:
    world = World(owner())
    world.act(crash=True)
    best: set[int] = set()
    for event in events:
        handle(world, event)
        done = parse_numbers(world.owner.status.completed)
        assert done >= best, "done tasks stay done"
        best |= done
    settle(world)
    assert set(world.created.values()) == {1}
    assert {each.number for each in world.owner.status.attempts} == set(range(1, len(world.owner.spec.attempts) + 2))
    assert world.owner.status.revision == 1
    status = world.owner.status
    failed = {task for each in status.failures for task in parse_numbers(each.tasks)}
    assert parse_numbers(status.completed) | failed == set(range(6))
    assert not parse_numbers(status.completed) & failed
    assert status.conditions[0].status == ("False" if failed else "True")


def handle(world: World, event: str) -> None:
    spec, generation = world.owner.spec, world.owner.metadata.generation
    match event:
        case "pass" | "crash":
            world.act(crash=event == "crash")
            return
        case "run" | "fail":
            world.run(2, failing=event == "fail")
            return
        case "hour" | "week":
            world.now += timedelta(hours=1) if event == "hour" else timedelta(days=7)
            return
        case "limit":
            spec = msgspec.structs.replace(
                spec, parallelism=1 + generation % 3, max_failed=5, deadline_seconds=generation
            )
        case "cancel":
            spec = msgspec.structs.replace(spec, cancelled=Cancellation(attempt=1 + len(spec.attempts), by="ann"))
        case "suspend" | "resume":
            spec = msgspec.structs.replace(spec, suspended="ann" if event == "suspend" else "")
        case _:
            spec = msgspec.structs.replace(spec, attempts=[*spec.attempts, Attempt(memory="1Gi")][:5])
    metadata = msgspec.structs.replace(world.owner.metadata, generation=generation + 1)
    world.owner = msgspec.structs.replace(world.owner, spec=spec, metadata=metadata)


def settle(world: World) -> None:
    """Resume the batch and let all attempts end."""
    world.owner = msgspec.structs.replace(world.owner, spec=msgspec.structs.replace(world.owner.spec, suspended=""))
    for _ in range(40):
        world.act()
        world.run(6)
    assert all(each.ended for each in world.owner.status.attempts)


def test_finished_job_is_deleted_after_keep_seconds_and_not_created_again() -> None:
    world = World(owner(keepSeconds=3600))
    world.act()
    world.run(6)
    assert world.act().wake_after_s == 3600
    assert ("Job", "resize-1-1") in world.natives
    world.now += timedelta(hours=1)
    world.act()
    assert ("Job", "resize-1-1") not in world.natives
    world.now += timedelta(days=400)
    world.act()
    assert world.created == {"resize-1-1": 1}
    assert world.owner.status.conditions[0].status == "True"
    assert world.plan().wake_after_s is None


def test_cancelled_batch_keeps_its_results_and_pods_and_can_be_rerun() -> None:
    world = World(owner(keepSeconds=3600))
    world.act()
    world.run(2)
    world.act()
    handle(world, "cancel")
    world.act()
    assert world.bodies["resize-1-1"]["suspend"]
    assert world.owner.status.conditions[0].status == "Unknown", "its pods have not ended yet"
    world.run(1)
    world.act()
    status = world.owner.status
    assert (status.completed, status.conditions[0].reason) == ("0,1", "Cancelled")
    assert status.attempts[0].reason == "Cancelled"
    world.act()
    assert ("Job", "resize-1-1") in world.natives
    handle(world, "rerun")
    world.act()
    world.run(6)
    world.act()
    assert (world.owner.status.completed, world.owner.status.conditions[0].status) == ("0-5", "True")
    assert world.created == {"resize-1-1": 1, "resize-1-2": 1}
    world.now += timedelta(hours=1)
    world.act()
    assert ("Job", "resize-1-1") not in world.natives


def test_batch_that_is_cancelled_before_it_begins_creates_no_job() -> None:
    world = World(owner(cancelled={"attempt": 1, "by": "ann"}))
    world.act()
    assert not world.created
    assert world.owner.status.conditions[0].reason == "Cancelled"


def test_finished_job_is_not_deleted_before_its_result_is_recorded() -> None:
    world = World(owner(keepSeconds=60))
    world.act()
    world.run(6)
    world.now += timedelta(days=7)
    world.act(crash=True)
    assert ("Job", "resize-1-1") in world.natives
    world.act()
    assert world.owner.status.done == 6


def test_ignores_indexes_that_the_job_does_not_have() -> None:
    world = World(owner())
    world.act()
    job = world.natives["Job", "resize-1-1"]
    status = NativeStatus(completed_indexes="4-8", failed_indexes="3,9")
    world.natives["Job", "resize-1-1"] = msgspec.structs.replace(job, status=status)
    world.act()
    assert (world.owner.status.completed, world.owner.status.failed) == ("4,5", 1)


def test_another_image_starts_a_new_revision_and_deletes_the_former_job() -> None:
    world = World(owner())
    world.act()
    world.run(3)
    world.act()
    assert world.owner.status.done == 3
    world.owner = owner(generation=7, status=world.owner.status, image="resize:2")
    world.act()
    assert [name for kind, name in world.natives if kind == "Job"] == ["resize-2-1"]
    assert (world.owner.status.revision, world.owner.status.done) == (2, 0)


def test_return_to_the_first_image_is_a_new_revision() -> None:
    world = World(owner())
    world.act()
    for generation, image in ((2, "resize:2"), (3, "resize:1")):
        world.owner = owner(generation=generation, status=world.owner.status, image=image)
        world.act()
    assert world.created == {"resize-1-1": 1, "resize-2-1": 1, "resize-3-1": 1}


CHANGES: dict[str, Any] = {
    "image": "resize:2",
    "tasks": 7,
    "retries": 1,
    "retry_exit_codes": [75],
    "enough": 3,
    "memory": "1Gi",
    "task_deadline_seconds": 9,
    "environment": {"A": "b"},
    "parallelism": 2,
    "suspended": "ann",
    "deadline_seconds": 9,
    "max_failed": 1,
    "keep_seconds": 100,
    "attempts": [Attempt()],
    "owner": "team-a",
}


@pytest.mark.parametrize("name", CHANGES)
def test_only_mutable_fields_keep_the_revision(name: str) -> None:
    spec = owner().spec
    changed = msgspec.structs.replace(spec, **{name: CHANGES[name]})
    assert (revision_content(changed) == revision_content(spec)) == (name in MUTABLE_JOB_SET_FIELDS)


def test_mutable_fields_exist() -> None:
    assert {each.name for each in msgspec.structs.fields(owner().spec)} >= MUTABLE_JOB_SET_FIELDS


def test_failures_are_grouped_and_limited() -> None:
    causes = {task: FailureCause("TaskFailed", task % 100, f"line {task}") for task in range(1000)}
    groups = group_failures(causes)
    assert len(groups) <= MAX_FAILURE_GROUPS
    assert sum(each.count for each in groups) == 1000
    assert group_failures(recorded_failures(groups)) == groups


def test_consequential_failures_come_last() -> None:
    causes = {0: FailureCause("TaskFailed", 3), **{task: FailureCause("TooManyFailed") for task in range(1, 9)}}
    assert [each.reason for each in group_failures(causes)] == ["TaskFailed", "TooManyFailed"]


def test_unknown_failure_is_restored_from_the_status() -> None:
    assert recorded_failures([TaskFailure(reason="TaskFailed", tasks="1-3", count=3)]) == dict.fromkeys(
        (1, 2, 3), FailureCause()
    )


def test_status_holds_ten_thousand_tasks_with_alternating_results() -> None:
    world = World(owner(tasks=10_000))
    world.act()
    job = world.natives["Job", "resize-1-1"]
    status = NativeStatus(
        completed_indexes=format_numbers(range(0, 10_000, 2)),
        failed_indexes=format_numbers(range(1, 10_000, 2)),
        conditions=[FAILED],
    )
    world.natives["Job", "resize-1-1"] = msgspec.structs.replace(job, status=status)
    world.act()
    encoded = msgspec.to_builtins(world.owner.status)
    assert msgspec.convert(encoded, JobSetStatus) == world.owner.status
    world.owner = msgspec.structs.replace(
        world.owner, spec=msgspec.structs.replace(world.owner.spec, attempts=[Attempt()])
    )
    world.act()
    assert world.bodies["resize-1-2"]["completions"] == 5_000

"""A batch over its whole life: whatever comes in between, nothing is begun twice and nothing is lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pincompute.api.job_set import PinterestJobSet
from pincompute.api.job_set_status import Failure, JobSetStatus
from pincompute.api.task import Attempt
from pincompute.objects.content import Object
from pincompute.objects.numbers import parse, spell
from pincompute.planning import job_set
from pincompute.planning.batch.attempts import PACE, work
from pincompute.planning.batch.failures import MOST_WAYS, Cause, grouped, remembered
from pincompute.planning.diff import diff
from pincompute.planning.plan import Plan
from pincompute.planning.snapshot import Cluster, Native, NativeCondition, NativeStatus, Snapshot
from pincompute.planning.steps import Apply, Create, Delete

START = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
CLUSTER = Cluster(name="main", domain="localhost", port=8080)
COMPLETE = NativeCondition(type="Complete", status="True")
FAILED = NativeCondition(type="Failed", status="True", reason="FailedIndexes")


def owner(generation: int = 1, status: JobSetStatus = JobSetStatus(), **spec: Any) -> PinterestJobSet:  # noqa: B008
    said = {"image": "resize:1", **({} if "items" in spec else {"tasks": 6}), **spec}
    whole = {
        "kind": "PinterestJobSet",
        "metadata": {"name": "resize", "namespace": "me", "uid": "owner-1", "generation": generation},
        "spec": said,
    }
    return msgspec.structs.replace(msgspec.convert(whole, PinterestJobSet), status=status)


@dataclass
class World:
    """A cluster with one batch: what is written stays, and the status only where nothing came in between."""

    owner: PinterestJobSet
    now: datetime = START
    natives: dict[tuple[str, str], Native] = field(default_factory=dict)
    bodies: dict[str, Object] = field(default_factory=dict)
    """Of each Job, what it was made with."""
    made: Counter[str] = field(default_factory=Counter)
    """How often each Job was made."""

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
                self.made[key[1]] += 1
            else:
                fixed = "template", "completions", "backoffLimitPerIndex", "podFailurePolicy", "successPolicy"
                assert [native["spec"].get(each) for each in fixed] == [self.bodies[key[1]].get(each) for each in fixed]
            self.bodies[key[1]] = native["spec"]
        seen = msgspec.convert({**native, "metadata": {**native["metadata"], "uid": f"uid-{key[1]}"}}, Native)
        self.natives[key] = msgspec.structs.replace(seen, status=before.status if before else NativeStatus())

    def run(self, places: int, *, failing: bool = False) -> None:
        """What Kubernetes does: some more places of each indexed Job end."""
        for (kind, name), native in list(self.natives.items()):
            body = self.bodies.get(name, {})
            if kind != "Job" or body["suspend"] or native.status.conditions:
                continue
            done, failed = parse(native.status.completed_indexes), parse(native.status.failed_indexes)
            left = [each for each in range(body["completions"]) if each not in done | failed][:places]
            done, failed = (done, failed | set(left)) if failing else (done | set(left), failed)
            ended = [FAILED if failed else COMPLETE] if len(done | failed) == body["completions"] else []
            status = NativeStatus(completed_indexes=spell(done), failed_indexes=spell(failed), conditions=ended)
            self.natives[kind, name] = msgspec.structs.replace(native, status=status)


MOVES = st.lists(
    st.sampled_from(["pass", "crash", "run", "fail", "slower", "suspend", "resume", "rerun", "hour", "week"]),
    max_size=40,
)


@given(MOVES)
def test_no_job_is_made_twice_and_no_result_is_lost(moves: list[str]) -> None:
    world = World(owner())
    world.act(crash=True)
    best: set[int] = set()
    for move in moves:
        edit(world, move)
        done = parse(world.owner.status.completed)
        assert done >= best, "what was done stays done"
        best |= done
    settle(world)
    assert set(world.made.values()) == {1}
    assert {each.number for each in world.owner.status.attempts} == set(range(1, len(world.owner.spec.attempts) + 2))
    assert world.owner.status.revision == 1
    status = world.owner.status
    failed = {task for each in status.failures for task in parse(each.tasks)}
    assert parse(status.completed) | failed == set(range(6))
    assert not parse(status.completed) & failed
    assert status.conditions[0].status == ("False" if failed else "True")


def edit(world: World, move: str) -> None:
    spec, generation = world.owner.spec, world.owner.metadata.generation
    match move:
        case "pass" | "crash":
            world.act(crash=move == "crash")
            return
        case "run" | "fail":
            world.run(2, failing=move == "fail")
            return
        case "hour" | "week":
            world.now += timedelta(hours=1) if move == "hour" else timedelta(days=7)
            return
        case "slower":
            spec = msgspec.structs.replace(
                spec, parallelism=1 + generation % 3, max_failed=5, deadline_seconds=generation
            )
        case "suspend" | "resume":
            spec = msgspec.structs.replace(spec, suspended="ann" if move == "suspend" else "")
        case _:
            spec = msgspec.structs.replace(spec, attempts=[*spec.attempts, Attempt(memory="1Gi")][:5])
    metadata = msgspec.structs.replace(world.owner.metadata, generation=generation + 1)
    world.owner = msgspec.structs.replace(world.owner, spec=spec, metadata=metadata)


def settle(world: World) -> None:
    """Resumed, and left alone until all attempts have ended."""
    world.owner = msgspec.structs.replace(world.owner, spec=msgspec.structs.replace(world.owner.spec, suspended=""))
    for _ in range(40):
        world.act()
        world.run(6)
    assert all(each.ended for each in world.owner.status.attempts)


def test_what_has_ended_is_removed_after_a_while_and_not_made_again() -> None:
    world = World(owner(keepSeconds=3600))
    world.act()
    world.run(6)
    assert world.act().wake_after == 3600
    assert ("Job", "resize-1-1") in world.natives
    world.now += timedelta(hours=1)
    world.act()
    assert ("Job", "resize-1-1") not in world.natives
    world.now += timedelta(days=400)
    world.act()
    assert world.made == {"resize-1-1": 1}
    assert world.owner.status.conditions[0].status == "True"
    assert world.plan().wake_after is None


def test_an_end_that_was_not_remembered_is_not_removed_however_long_ago_it_was() -> None:
    world = World(owner(keepSeconds=60))
    world.act()
    world.run(6)
    world.now += timedelta(days=7)
    world.act(crash=True)
    assert ("Job", "resize-1-1") in world.natives
    world.act()
    assert world.owner.status.done == 6


def test_a_job_that_says_more_than_it_has_is_not_believed() -> None:
    world = World(owner())
    world.act()
    job = world.natives["Job", "resize-1-1"]
    said = NativeStatus(completed_indexes="4-8", failed_indexes="3,9")
    world.natives["Job", "resize-1-1"] = msgspec.structs.replace(job, status=said)
    world.act()
    assert (world.owner.status.completed, world.owner.status.failed) == ("4,5", 1)


def test_another_program_begins_anew_and_ends_what_ran() -> None:
    world = World(owner())
    world.act()
    world.run(3)
    world.act()
    assert world.owner.status.done == 3
    world.owner = owner(generation=7, status=world.owner.status, image="resize:2")
    world.act()
    assert [name for kind, name in world.natives if kind == "Job"] == ["resize-7-1"]
    assert (world.owner.status.revision, world.owner.status.done) == (7, 0)


def test_the_first_image_again_is_another_revision_again() -> None:
    world = World(owner())
    world.act()
    for generation, image in ((2, "resize:2"), (3, "resize:1")):
        world.owner = owner(generation=generation, status=world.owner.status, image=image)
        world.act()
    assert world.made == {"resize-1-1": 1, "resize-2-1": 1, "resize-3-1": 1}


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
def test_what_begins_anew_and_what_only_changes_the_pace(name: str) -> None:
    spec = owner().spec
    changed = msgspec.structs.replace(spec, **{name: CHANGES[name]})
    word = next(each.encode_name for each in msgspec.structs.fields(spec) if each.name == name)
    assert (work(changed) == work(spec)) == (word in PACE)


def test_every_word_of_the_pace_is_a_field() -> None:
    assert {each.encode_name for each in msgspec.structs.fields(owner().spec)} >= PACE


def test_ways_to_fail_are_grouped_and_bounded() -> None:
    causes = {task: Cause("TaskFailed", task % 100, f"line {task}") for task in range(1000)}
    found = grouped(causes)
    assert len(found) <= MOST_WAYS
    assert sum(each.count for each in found) == 1000
    assert grouped(remembered(found)) == found


def test_what_follows_from_other_failures_is_told_last() -> None:
    causes = {0: Cause("TaskFailed", 3), **{task: Cause("TooManyFailed") for task in range(1, 9)}}
    assert [each.reason for each in grouped(causes)] == ["TaskFailed", "TooManyFailed"]


def test_a_failure_that_nobody_saw_stays_one() -> None:
    assert remembered([Failure(reason="TaskFailed", tasks="1-3", count=3)]) == dict.fromkeys((1, 2, 3), Cause())


def test_ten_thousand_tasks_of_which_every_second_failed_fit_into_a_status() -> None:
    world = World(owner(tasks=10_000))
    world.act()
    job = world.natives["Job", "resize-1-1"]
    status = NativeStatus(
        completed_indexes=spell(range(0, 10_000, 2)), failed_indexes=spell(range(1, 10_000, 2)), conditions=[FAILED]
    )
    world.natives["Job", "resize-1-1"] = msgspec.structs.replace(job, status=status)
    world.act()
    said = msgspec.to_builtins(world.owner.status)
    assert msgspec.convert(said, JobSetStatus) == world.owner.status
    world.owner = msgspec.structs.replace(
        world.owner, spec=msgspec.structs.replace(world.owner.spec, attempts=[Attempt()])
    )
    world.act()
    assert world.bodies["resize-1-2"]["completions"] == 5_000

"""Edits as pure functions: each does one thing, can be undone, and is refused with words where it cannot be."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pincompute.api.change import AS_FOUND, Change, Pause, Rerun, Restart, Resume, Rollback, Scale
from pincompute.api.kinds import WORKLOADS
from pincompute.api.names import API_VERSION, IMAGES, RUN_NOW
from pincompute.api.training_job import PinterestTrainingJob
from pincompute.api.wire import Metadata, spoken
from pincompute.api.workload import Workload
from pincompute.base.problem import Refused
from pincompute.objects.content import Object
from pincompute.planning.natives import configuration
from pincompute.planning.people.edits import as_found, carried, edit, filed
from pincompute.planning.people.history import Past, history
from pincompute.planning.people.preview import LAPTOP
from pincompute.planning.pods.pod import Made
from pincompute.planning.revision import record
from pincompute.planning.snapshot import Snapshot

NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
SPECS: dict[str, dict[str, Any]] = {
    "PinterestService": {"port": 8080},
    "PinterestStatefulSet": {"port": 5432},
    "PinterestDaemon": {},
    "PinterestJobSet": {"tasks": 500},
    "PinterestCronJob": {"schedule": "30 3 * * *"},
    "PinterestTrainingJob": {"framework": "pytorch", "workers": 2},
}
RUNS_ON = ("PinterestService", "PinterestStatefulSet", "PinterestDaemon")
FAILED = [
    {"reason": "OutOfMemory", "exitCode": 137, "tasks": "17,88,203-204,391", "count": 5},
    {"reason": "TaskFailed", "exitCode": 3, "tasks": "12,470", "count": 2},
]


def workload(kind: str, generation: int = 1, status: Object | None = None, **spec: Any) -> Workload:
    whole = {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": "hello", "namespace": "me", "uid": "owner-1", "generation": generation},
        "spec": {"image": "hello:dev", **SPECS[kind], **spec},
        "status": status or {},
    }
    return msgspec.convert(whole, WORKLOADS[kind])


def recorded(owner: Workload, **annotations: str) -> list[Object]:
    """The records that its present revision leaves in the cluster."""
    snapshot = Snapshot(owner, (), (), LAPTOP, NOW)
    made = record(snapshot, Made({}), ())
    made["metadata"]["annotations"] |= annotations
    return [made, *configuration(snapshot)]


def later(owner: Workload) -> Workload:
    """As Kubernetes counts it once it is written."""
    metadata = msgspec.structs.replace(owner.metadata, generation=owner.metadata.generation + 1)
    return msgspec.structs.replace(owner, metadata=metadata)


def past_of(*owners: Workload) -> tuple[Past, ...]:
    return history(owners[-1], [each for owner in owners for each in recorded(owner)])


CHANGES = st.one_of(
    st.builds(Scale, copies=st.integers(0, 40)),
    st.builds(Pause, by=st.sampled_from(["ann", ""]), because=st.sampled_from(["", "looking"])),
    st.just(Resume()),
    st.just(Restart()),
    st.builds(Rerun, memory=st.sampled_from(["", "1Gi"]), tasks=st.sampled_from(["failed", "3,5"])),
)


@pytest.mark.parametrize("kind", ["PinterestJobSet", "PinterestTrainingJob"])
def test_what_ends_goes_back_only_while_it_has_done_nothing(kind: str) -> None:
    first, second = (workload(kind, generation=each, image=f"a:{each}") for each in (1, 2))
    past = past_of(first, second)
    assert edit(second, Rollback(), past).workload.spec == first.spec
    working = msgspec.structs.replace(second, status=msgspec.convert({"done": 1}, type(second.status)))
    with pytest.raises(Refused, match="cannot be undone") as refused:
        edit(working, Rollback(), past)
    assert refused.value.problems[0].next == "pin deploy FILE, or: pin rerun hello"


@given(kind=st.sampled_from(sorted(WORKLOADS)), changes=st.lists(CHANGES, max_size=4), paused=st.booleans())
def test_a_rollback_of_any_edits_restores_the_spec_exactly(kind: str, changes: list[Change], paused: bool) -> None:
    files = {"a.toml": "b"}
    before = workload(kind, configuration=files)
    if paused:
        before = edit(before, Pause(by="ann")).workload
    after = before
    for each in changes:
        after = _tried(after, each)
    after = later(after)
    assert edit(after, Rollback(to=1), past_of(before, after)).workload.spec == before.spec


@given(kind=st.sampled_from([*sorted(WORKLOADS), "elastic"]), changes=st.lists(CHANGES, max_size=4))
def test_no_edit_makes_another_file_of_it_and_every_other_file_does(kind: str, changes: list[Change]) -> None:
    elastic: dict[str, Any] = {"elastic": {"minimum": 1, "maximum": 40}} if kind == "elastic" else {}
    kind = "PinterestTrainingJob" if kind == "elastic" else kind
    before = after = workload(kind, **elastic)
    for each in changes:
        after = _tried(after, each)
    assert filed(after).spec == filed(before).spec
    assert filed(workload(kind, environment={"A": "b"}, **elastic)).spec != filed(after).spec


def _tried(owner: Workload, change: Change) -> Workload:
    """What cannot be is refused with something to type next, and leaves it as it is."""
    try:
        return edit(owner, change).workload
    except Refused as refused:
        if any(not (each.next or each.note) for each in refused.problems):
            raise
        return owner


@pytest.mark.parametrize("kind", sorted(WORKLOADS))
def test_what_is_paused_and_resumed_is_what_it_was(kind: str) -> None:
    before = workload(kind)
    paused = edit(before, Pause(by="ann", because="looking at errors"))
    assert paused.said == ("is paused by ann: looking at errors",)
    assert paused.workload != before
    assert edit(paused.workload, Pause(by="bob")).workload is paused.workload
    assert edit(paused.workload, Resume(by="bob")).workload == before
    assert edit(before, Resume()).workload is before


@pytest.mark.parametrize("kind", RUNS_ON)
def test_each_restart_is_another_one(kind: str) -> None:
    once = edit(workload(kind), Restart()).workload
    twice = edit(once, Restart()).workload
    assert len({str(spoken(each.spec)) for each in (workload(kind), once, twice)}) == 3


REFUSED = [
    ("PinterestDaemon", Scale(copies=2), "once on each node", "pin deploy FILE"),
    ("PinterestCronJob", Scale(copies=2), "has no copies", "pin rerun hello"),
    ("PinterestTrainingJob", Scale(copies=2), "know how many they are", "pin deploy FILE"),
    ("PinterestJobSet", Scale(copies=0), "one task at a time at least", "pin pause hello"),
    ("PinterestJobSet", Scale(copies=501), "parallelism is 501, and there are 500 tasks", "leave it out"),
    ("PinterestJobSet", Restart(), "a job set ends by itself", "pin rerun hello"),
    ("PinterestCronJob", Restart(), "a periodic job ends by itself", "pin rerun hello"),
    ("PinterestService", Rerun(), "a service runs on", "pin restart hello"),
    ("PinterestJobSet", Rerun(), "no task of hello has failed", "pin get hello"),
    ("PinterestJobSet", Rerun(tasks="500"), "there is no task 500", ""),
    ("PinterestTrainingJob", Rerun(tasks="1"), "runs again whole", "pin rerun hello"),
    ("PinterestCronJob", Rerun(memory="1Gi"), "as its file says", "pin rerun hello"),
    ("PinterestService", Rollback(), "never otherwise", "pin show hello"),
    ("PinterestService", Rollback(to=7), "no record of hello@7", "pin show hello"),
]


@pytest.mark.parametrize(("kind", "change", "told", "next_"), REFUSED)
def test_what_has_no_meaning_is_refused_with_what_to_type(kind: str, change: Change, told: str, next_: str) -> None:
    with pytest.raises(Refused) as refused:
        edit(workload(kind), change)
    problem = refused.value.problems[0]
    assert told in problem.what
    assert next_ in problem.next
    assert problem.where.object == "me/hello"


def test_a_rerun_adds_an_attempt_of_what_failed_so() -> None:
    owner = workload("PinterestJobSet", status={"failures": FAILED}, attempts=[{"tasks": "1"}])
    done = edit(owner, Rerun(reason="OutOfMemory", memory="1Gi"))
    assert done.said == ("attempt 3: the 5 tasks that failed by OutOfMemory, with memory 1Gi",)
    assert spoken(done.workload.spec)["attempts"] == [{"tasks": "1"}, {"reason": "OutOfMemory", "memory": "1Gi"}]
    with pytest.raises(Refused, match="no task of hello has failed by DeadlineExceeded"):
        edit(owner, Rerun(reason="DeadlineExceeded"))


def test_a_program_that_cannot_run_again_is_told_so() -> None:
    owner = workload("PinterestJobSet", command=["run", "$(PIN_TASK)"])
    with pytest.raises(Refused, match="is not known to a task that runs again"):
        edit(owner, Rerun(tasks="3"))


def test_a_training_begins_anew_with_what_it_is_given() -> None:
    done = edit(workload("PinterestTrainingJob"), Rerun(memory="2Gi"))
    assert spoken(done.workload.spec)["attempt"] == 2
    assert done.workload.spec.memory == "2Gi"


def test_a_periodic_job_runs_once_more_each_time() -> None:
    owner = workload("PinterestCronJob", status={"ranNow": 3})
    once = edit(owner, Rerun()).workload
    assert once.metadata.annotations[RUN_NOW] == "4"
    assert once.spec == owner.spec
    assert edit(once, Rerun()).workload.metadata.annotations[RUN_NOW] == "5"


def test_a_rollback_goes_to_what_it_last_was_otherwise_and_says_what_that_changes() -> None:
    first = workload("PinterestService", image="hello:1", environment={"TOKEN": "token=hunter2"})
    second = workload("PinterestService", 2, image="hello:2", replicas=3)
    third = workload("PinterestService", 3, image="hello:2", replicas=3)
    done = edit(third, Rollback(), past_of(first, second, third))
    assert done.workload.spec == first.spec
    told, *changes = done.said
    assert told == "is again what hello@1 was"
    assert [each for each in changes if "TOKEN" not in each] == ["image hello:2 -> hello:1", "replicas 3 -> 1"]
    assert "hunter2" not in str(changes)


def test_a_rollback_says_when_an_image_is_another_by_now() -> None:
    owners = [workload("PinterestService", number, replicas=number) for number in (1, 2)]
    digests = ("sha256:" + "a" * 64, "sha256:" + "b" * 64)
    records = [
        each
        for owner, digest in zip(owners, digests, strict=True)
        for each in recorded(owner, **{IMAGES: f"hello={digest}"})
    ]
    done = edit(owners[1], Rollback(), history(owners[1], records))
    assert done.said[-1] == "hello:dev is sha256:bbbbbbbbbbbb by now, and was sha256:aaaaaaaaaaaa in hello@1"


def test_a_record_that_is_not_ours_is_no_history() -> None:
    owner = workload("PinterestService")
    stranger = msgspec.structs.replace(owner, metadata=Metadata(name="hello", uid="owner-2", generation=1))
    assert history(owner, recorded(stranger)) == ()


@pytest.mark.parametrize("kind", RUNS_ON)
def test_a_new_file_leaves_alone_what_was_edited_and_it_does_not_speak_of(kind: str) -> None:
    edited: Any = edit(edit(workload(kind), Restart()).workload, Pause(by="ann")).workload
    new: Any = workload(kind, image="hello:2")
    kept: Any = carried(edited, new)
    assert (kept.spec.rollout, kept.spec.image) == (edited.spec.rollout, "hello:2")
    said: Any = workload(kind, rollout={"paused": "bob", "restarts": 7})
    assert carried(edited, said) == said
    assert carried(None, new) is new


@pytest.mark.parametrize("kind", RUNS_ON)
def test_a_new_file_lets_go_of_what_was_only_held_as_it_was_found(kind: str) -> None:
    found: Any = workload(kind, rollout={"paused": AS_FOUND, "restarts": 2})
    assert as_found(found)
    kept: Any = carried(found, workload(kind, image="hello:2"))
    assert (kept.spec.rollout.paused, kept.spec.rollout.restarts) == ("", 2)
    said: Any = workload(kind, rollout={"paused": AS_FOUND})
    kept = carried(found, said)
    assert kept.spec.rollout.paused == AS_FOUND


def test_a_new_file_is_the_copies_that_it_says() -> None:
    scaled = edit(workload("PinterestService"), Scale(copies=5)).workload
    kept: Any = carried(scaled, workload("PinterestService"))
    assert kept.spec.replicas == 1


def test_what_ran_again_stays_with_the_work_and_goes_with_another() -> None:
    rerun: Any = edit(workload("PinterestJobSet"), Rerun(tasks="3")).workload
    same: Any = carried(rerun, workload("PinterestJobSet", parallelism=7))
    other: Any = carried(rerun, workload("PinterestJobSet", image="hello:2"))
    assert same.spec.attempts == rerun.spec.attempts
    assert other.spec.attempts == []


@pytest.mark.parametrize("worker", [None, {"memory": "1Gi", "replicas": 2}])
def test_what_is_elastic_is_scaled_within_its_bounds(worker: dict[str, Any] | None) -> None:
    said: Object = {"workers": 0, "roles": {"worker": worker}} if worker else {}
    owner = workload("PinterestTrainingJob", elastic={"minimum": 2, "maximum": 4}, **said)
    assert isinstance(owner, PinterestTrainingJob)
    done = edit(owner, Scale(copies=4))
    assert isinstance(done.workload, PinterestTrainingJob)
    assert done.workload.spec.members["worker"].replicas == 4
    assert done.workload.spec.elastic == owner.spec.elastic
    with pytest.raises(Refused) as refused:
        edit(owner, Scale(copies=5))
    (problem,) = refused.value.problems
    assert problem.what == "it is elastic from 2 to 4 workers, and 5 are asked for"
    assert problem.next == "pin scale hello 4"

"""Changes of a workload: each does one thing, can be undone, and is rejected with a reason where it cannot be done."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from pincompute.api.change import IMPORTED_PAUSE, Cancel, Change, Pause, Rerun, Restart, Resume, Rollback, Scale
from pincompute.api.kinds import WORKLOADS
from pincompute.api.names import API_VERSION, IMAGES_ANNOTATION, RUN_NOW_ANNOTATION, RUNTIME_ANNOTATION
from pincompute.api.structs import Metadata, without_defaults
from pincompute.api.training_job import PinterestTrainingJob
from pincompute.api.workload import Workload
from pincompute.base.problem import Refused
from pincompute.objects.content import Object
from pincompute.planning.edits import apply_change, can_roll_back, preserve_edits, runs_adopted_replicas, without_edits
from pincompute.planning.natives import configuration_files
from pincompute.planning.pods.pod import BuiltTemplate
from pincompute.planning.revision import revision_record
from pincompute.planning.revision_number import expected_revision, revision_content
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.views.history import RevisionRecord, read_history
from pincompute.planning.views.plan_preview import LOCAL_CLUSTER

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
        "status": {"revision": generation, **(status or {})},
    }
    owner = msgspec.convert(whole, WORKLOADS[kind])
    return _with_status(owner, content=revision_content(owner.spec))


def _with_status(owner: Workload, **fields: Any) -> Workload:
    return msgspec.structs.replace(owner, status=msgspec.structs.replace(owner.status, **fields))


def recorded(owner: Workload, **annotations: str) -> list[Object]:
    """Records of the present revision in the cluster."""
    snapshot = Snapshot(owner, (), (), LOCAL_CLUSTER, NOW)
    made = revision_record(snapshot, BuiltTemplate({}), ())
    made["metadata"]["annotations"] |= annotations
    return [made, *configuration_files(snapshot)]


def later(owner: Workload) -> Workload:
    """The workload after a write: with the generation that Kubernetes assigns, and seen by the operator."""
    metadata = msgspec.structs.replace(owner.metadata, generation=owner.metadata.generation + 1)
    revision = expected_revision(owner)
    seen = _with_status(owner, revision=revision.number, content=revision.content)
    return msgspec.structs.replace(seen, metadata=metadata)


def past_of(*owners: Workload) -> tuple[RevisionRecord, ...]:
    return read_history(owners[-1], [each for owner in owners for each in recorded(owner)])


CHANGES = st.one_of(
    st.builds(Scale, replicas=st.integers(0, 40)),
    st.builds(Pause, by=st.sampled_from(["ann", ""]), because=st.sampled_from(["", "looking"])),
    st.just(Resume()),
    st.just(Restart()),
    st.builds(Rerun, memory=st.sampled_from(["", "1Gi"]), tasks=st.sampled_from(["failed", "3,5"])),
)


@pytest.mark.parametrize("kind", ["PinterestJobSet", "PinterestTrainingJob"])
def test_finite_work_rolls_back_only_before_it_did_anything(kind: str) -> None:
    first, second = (workload(kind, generation=each, image=f"a:{each}") for each in (1, 2))
    past = past_of(first, second)
    assert apply_change(second, Rollback(partial=True), past).workload.spec == first.spec
    working = msgspec.structs.replace(second, status=msgspec.convert({"done": 1}, type(second.status)))
    with pytest.raises(Refused, match="cannot be undone") as refused:
        apply_change(working, Rollback(), past)
    assert refused.value.problems[0].next == "pin deploy FILE, or: pin rerun hello"


@given(kind=st.sampled_from(sorted(WORKLOADS)), changes=st.lists(CHANGES, max_size=4))
def test_edits_make_no_revision_and_a_rollback_keeps_them(kind: str, changes: list[Change]) -> None:
    first = workload(kind, configuration={"a.toml": "b"})
    second: Any = later(_changed_image(first))
    edited: Any = second
    for change in changes:
        edited = _changed_if_accepted(edited, change)
    changed_resources = any(isinstance(each, Rerun) and each.memory for each in changes)
    expected = 3 if changed_resources and kind == "PinterestTrainingJob" else 2
    assert expected_revision(edited).number == expected
    restored: Any = apply_change(later(edited), Rollback(to=1, partial=True), past_of(first, later(edited))).workload
    assert without_edits(restored).spec == without_edits(first).spec
    for field in ("replicas", "parallelism", "suspended", "attempts", "attempt"):
        assert getattr(restored.spec, field, None) == getattr(edited.spec, field, None)
    if hasattr(edited.spec, "rollout"):
        assert (restored.spec.rollout.paused, restored.spec.rollout.restarts) == ("", edited.spec.rollout.restarts)


def _changed_image(owner: Workload) -> Workload:
    return msgspec.structs.replace(owner, spec=msgspec.structs.replace(owner.spec, image="hello:2"))


@given(kind=st.sampled_from([*sorted(WORKLOADS), "elastic"]), changes=st.lists(CHANGES, max_size=4))
def test_without_edits_ignores_edits_but_no_other_change(kind: str, changes: list[Change]) -> None:
    elastic: dict[str, Any] = {"elastic": {"minimum": 1, "maximum": 40}} if kind == "elastic" else {}
    kind = "PinterestTrainingJob" if kind == "elastic" else kind
    before = after = workload(kind, **elastic)
    for change in changes:
        after = _changed_if_accepted(after, change)
    assert without_edits(after).spec == without_edits(before).spec
    assert without_edits(workload(kind, environment={"A": "b"}, **elastic)).spec != without_edits(after).spec


def _changed_if_accepted(owner: Workload, change: Change) -> Workload:
    """The changed workload, or the same one if the change is rejected with a note or a next step."""
    try:
        return apply_change(owner, change).workload
    except Refused as refused:
        if any(not (each.next or each.note) for each in refused.problems):
            raise
        return owner


@pytest.mark.parametrize("kind", sorted(WORKLOADS))
def test_pause_and_resume_restore_the_workload(kind: str) -> None:
    before = workload(kind)
    paused = apply_change(before, Pause(by="ann", because="looking at errors"))
    assert paused.effects == ("paused by ann: looking at errors",)
    assert paused.workload != before
    assert apply_change(paused.workload, Pause(by="bob")).workload is paused.workload
    assert apply_change(paused.workload, Resume(by="bob")).workload == before
    assert apply_change(before, Resume()).workload is before


@pytest.mark.parametrize("kind", ["PinterestJobSet", "PinterestTrainingJob"])
def test_cancel_ends_the_present_attempt_only(kind: str) -> None:
    before = workload(kind)
    cancelled = apply_change(before, Cancel(by="ann", because="wrong input"))
    assert cancelled.effects[0].startswith("cancelled by ann: wrong input")
    assert apply_change(cancelled.workload, Cancel(by="bob")).effects == ("already cancelled by ann: wrong input",)
    rerun = apply_change(cancelled.workload, Rerun(tasks="1" if kind == "PinterestJobSet" else "failed")).workload
    assert apply_change(rerun, Cancel(by="bob")).effects[0].startswith("cancelled by bob")
    same_file = preserve_edits(cancelled.workload, before)
    assert same_file == cancelled.workload, "a deploy of the same file does not start it again"
    assert preserve_edits(cancelled.workload, workload(kind, image="hello:2")) == workload(kind, image="hello:2")


@pytest.mark.parametrize("kind", ["PinterestJobSet", "PinterestTrainingJob"])
def test_ended_work_is_not_cancelled(kind: str) -> None:
    done = {
        "type": "Succeeded",
        "status": "True",
        "reason": "Succeeded",
        "message": "all done",
        "lastTransitionTime": "",
    }
    ended = workload(kind, status={"observedGeneration": 1, "conditions": [done]})
    result = apply_change(ended, Cancel(by="ann"))
    assert result.workload is ended
    assert result.effects == ("has ended already: all done",)


@pytest.mark.parametrize("kind", ["PinterestJobSet", "PinterestTrainingJob"])
def test_work_that_has_done_anything_cannot_be_rolled_back(kind: str) -> None:
    done = workload(kind, status={"done": 2})
    assert not can_roll_back(done)
    edited = msgspec.structs.replace(done, spec=msgspec.structs.replace(done.spec, suspended="ann"))
    assert not can_roll_back(edited)
    # The operator has not written a status for the new content yet.
    assert can_roll_back(msgspec.structs.replace(done, spec=msgspec.structs.replace(done.spec, image="hello:2")))


@pytest.mark.parametrize("kind", RUNS_ON)
def test_each_restart_changes_the_spec(kind: str) -> None:
    once = apply_change(workload(kind), Restart()).workload
    twice = apply_change(once, Restart()).workload
    assert len({str(without_defaults(each.spec)) for each in (workload(kind), once, twice)}) == 3


REJECTED = [
    ("PinterestDaemon", Scale(replicas=2), "once on each node", "pin deploy FILE"),
    ("PinterestCronJob", Scale(replicas=2), "has no replicas", "pin rerun hello"),
    ("PinterestTrainingJob", Scale(replicas=2), "only if it is elastic", "pin deploy FILE"),
    ("PinterestJobSet", Scale(replicas=0), "at least one task at a time", "pin pause hello"),
    ("PinterestJobSet", Scale(replicas=501), "parallelism is 501, but there are only 500 tasks", "leave it out"),
    ("PinterestJobSet", Restart(), "a job set ends by itself", "pin rerun hello"),
    ("PinterestCronJob", Restart(), "a periodic job ends by itself", "pin rerun hello"),
    ("PinterestService", Cancel(), "a service does not end by itself", "pin scale hello 0, or: pin delete hello"),
    ("PinterestDaemon", Cancel(), "a daemon does not end by itself", "pin pause hello, or: pin delete hello"),
    ("PinterestCronJob", Cancel(), "a periodic job does not end by itself", "pin pause hello, or: pin delete hello"),
    ("PinterestService", Rerun(), "a service runs forever", "pin restart hello"),
    ("PinterestJobSet", Rerun(), "no task of hello failed", "pin get hello"),
    ("PinterestJobSet", Rerun(tasks="500"), "there is no task 500", ""),
    ("PinterestTrainingJob", Rerun(tasks="1"), "rerun as a whole", "pin rerun hello"),
    ("PinterestCronJob", Rerun(memory="1Gi"), "no tasks to select", "pin rerun hello"),
    ("PinterestService", Rollback(), "no earlier revision of hello", "pin show hello"),
    ("PinterestService", Rollback(to=7), "no record of revision hello@7", "pin show hello"),
]


@pytest.mark.parametrize(("kind", "change", "what", "next_"), REJECTED)
def test_rejects_unsupported_change_with_a_next_step(kind: str, change: Change, what: str, next_: str) -> None:
    with pytest.raises(Refused) as refused:
        apply_change(workload(kind), change)
    problem = refused.value.problems[0]
    assert what in problem.what
    assert next_ in problem.next
    assert problem.where.object == "me/hello"


def test_rerun_adds_an_attempt_of_the_failed_tasks() -> None:
    owner = workload("PinterestJobSet", status={"failures": FAILED}, attempts=[{"tasks": "1"}])
    done = apply_change(owner, Rerun(reason="OutOfMemory", memory="1Gi"))
    assert done.effects == ("attempt 3: the 5 tasks that failed with OutOfMemory, with memory 1Gi",)
    assert without_defaults(done.workload.spec)["attempts"] == [
        {"tasks": "1"},
        {"reason": "OutOfMemory", "memory": "1Gi"},
    ]
    with pytest.raises(Refused, match="no task of hello failed with DeadlineExceeded"):
        apply_change(owner, Rerun(reason="DeadlineExceeded"))


def test_reruns_chosen_tasks_of_a_program_that_uses_the_task_variable() -> None:
    owner = workload("PinterestJobSet", command=["run", "$(PIN_TASK)"])
    assert apply_change(owner, Rerun(tasks="3")).effects == ("attempt 2: tasks 3",)


def test_rerun_of_training_starts_again_with_given_resources() -> None:
    done = apply_change(workload("PinterestTrainingJob"), Rerun(memory="2Gi"))
    assert without_defaults(done.workload.spec)["attempt"] == 2
    assert done.workload.spec.memory == "2Gi"


def test_each_rerun_of_a_periodic_job_requests_another_run() -> None:
    owner = workload("PinterestCronJob", status={"ranNow": 3})
    once = apply_change(owner, Rerun()).workload
    assert once.metadata.annotations[RUN_NOW_ANNOTATION] == "4"
    assert once.spec == owner.spec
    assert apply_change(once, Rerun()).workload.metadata.annotations[RUN_NOW_ANNOTATION] == "5"


def test_rollback_restores_last_different_revision_and_lists_changes() -> None:
    first = workload("PinterestService", image="hello:1", environment={"TOKEN": "token=hunter2"})
    second = workload("PinterestService", 2, image="hello:2", port=80)
    third = workload("PinterestService", 3, image="hello:2", port=80)
    done = apply_change(third, Rollback(partial=True), past_of(first, second, third))
    assert done.workload.spec == first.spec
    first_effect, *changes = done.effects
    assert first_effect == "rolled back to hello@1"
    assert [each for each in changes if "TOKEN" not in each] == ["image hello:2 -> hello:1", "port 80 -> 8080"]
    assert "hunter2" not in str(changes)


def test_rollback_reports_moved_image_tags() -> None:
    owners = [workload("PinterestService", number, port=number) for number in (1, 2)]
    digests = ("sha256:" + "a" * 64, "sha256:" + "b" * 64)
    records = [
        each
        for owner, digest in zip(owners, digests, strict=True)
        for each in recorded(owner, **{IMAGES_ANNOTATION: f"hello={digest}"})
    ]
    done = apply_change(owners[1], Rollback(), read_history(owners[1], records))
    assert done.effects[-1] == "tag hello:dev has moved: sha256:aaaaaaaaaaaa in hello@1, sha256:bbbbbbbbbbbb now"
    assert done.workload.spec.image == f"hello:dev@{digests[0]}"


def test_rollback_restores_digests_of_all_containers() -> None:
    own, beside, pinned = ("sha256:" + each * 64 for each in "abc")
    containers = [{"name": "own", "image": "own:1"}, {"name": "beside", "image": f"beside:1@{pinned}"}]
    first = workload("PinterestService", image="", template={"spec": {"containers": containers}})
    second = workload("PinterestService", 2)
    images = f"own={own} beside={beside}"
    past = read_history(second, [*recorded(first, **{IMAGES_ANNOTATION: images}), *recorded(second)])
    restored = apply_change(second, Rollback(), past).workload
    assert [each["image"] for each in restored.spec.template["spec"]["containers"]] == [
        f"own:1@{own}",
        f"beside:1@{pinned}",
    ]


def test_rollback_without_a_recorded_digest_asks() -> None:
    first, second = workload("PinterestService", image="hello:1"), workload("PinterestService", 2)
    past = past_of(first, second)
    with pytest.raises(Refused, match="no digest was recorded for image hello:1 of container hello") as refused:
        apply_change(second, Rollback(), past)
    assert refused.value.problems[0].next == "pin rollback hello --to 1 --partial"
    assert apply_change(second, Rollback(partial=True), past).workload.spec.image == "hello:1"
    simulated = _with_status(second, simulated=True)
    assert apply_change(simulated, Rollback(), past).workload.spec.image == "hello:1"


def test_rollback_names_the_runtime_that_it_does_not_restore() -> None:
    first = workload("PinterestService", image="hello:1")
    second = _with_status(workload("PinterestService", 2), runtime=42)
    records = [*recorded(first, **{RUNTIME_ANNOTATION: "41"}), *recorded(second)]
    effects = apply_change(second, Rollback(partial=True), read_history(second, records)).effects
    assert effects[-1] == "runtime 42 stays: hello@1 ran with 41, which `hold` in its file can keep"


def test_ignores_records_of_another_owner() -> None:
    owner = workload("PinterestService")
    stranger = msgspec.structs.replace(owner, metadata=Metadata(name="hello", uid="owner-2", generation=1))
    assert read_history(owner, recorded(stranger)) == ()


@pytest.mark.parametrize("kind", RUNS_ON)
def test_new_file_keeps_edits_that_it_does_not_set(kind: str) -> None:
    edited: Any = apply_change(apply_change(workload(kind), Restart()).workload, Pause(by="ann")).workload
    new: Any = workload(kind, image="hello:2")
    kept: Any = preserve_edits(edited, new)
    assert (kept.spec.rollout, kept.spec.image) == (edited.spec.rollout, "hello:2")
    changed_file: Any = workload(kind, rollout={"paused": "bob", "restarts": 7})
    assert preserve_edits(edited, changed_file) == changed_file
    assert preserve_edits(None, new) is new


@pytest.mark.parametrize("kind", RUNS_ON)
def test_new_file_ends_the_pause_of_an_import(kind: str) -> None:
    found: Any = workload(kind, rollout={"paused": IMPORTED_PAUSE, "restarts": 2})
    assert runs_adopted_replicas(found)
    kept: Any = preserve_edits(found, workload(kind, image="hello:2"))
    assert (kept.spec.rollout.paused, kept.spec.rollout.restarts) == ("", 2)
    changed_file: Any = workload(kind, rollout={"paused": IMPORTED_PAUSE})
    kept = preserve_edits(found, changed_file)
    assert kept.spec.rollout.paused == IMPORTED_PAUSE


def test_new_file_sets_the_number_of_replicas() -> None:
    scaled = apply_change(workload("PinterestService"), Scale(replicas=5)).workload
    kept: Any = preserve_edits(scaled, workload("PinterestService"))
    assert kept.spec.replicas == 1


def test_new_file_keeps_attempts_of_equal_work_only() -> None:
    rerun: Any = apply_change(workload("PinterestJobSet"), Rerun(tasks="3")).workload
    same: Any = preserve_edits(rerun, workload("PinterestJobSet", parallelism=7))
    other: Any = preserve_edits(rerun, workload("PinterestJobSet", image="hello:2"))
    assert same.spec.attempts == rerun.spec.attempts
    assert other.spec.attempts == []


@pytest.mark.parametrize("worker", [None, {"memory": "1Gi", "replicas": 2}])
def test_elastic_training_scales_within_its_bounds(worker: dict[str, Any] | None) -> None:
    changed_file: Object = {"workers": 0, "roles": {"worker": worker}} if worker else {}
    owner = workload("PinterestTrainingJob", elastic={"minimum": 2, "maximum": 4}, **changed_file)
    assert isinstance(owner, PinterestTrainingJob)
    done = apply_change(owner, Scale(replicas=4))
    assert isinstance(done.workload, PinterestTrainingJob)
    assert done.workload.spec.active_roles["worker"].replicas == 4
    assert done.workload.spec.elastic == owner.spec.elastic
    with pytest.raises(Refused) as refused:
        apply_change(owner, Scale(replicas=5))
    (problem,) = refused.value.problems
    assert problem.what == "elastic between 2 and 4 workers, 5 requested"
    assert problem.next == "pin scale hello 4"

"""Numbers of revisions: one for each content, never used twice, also after interrupted passes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from pincompute.api.change import Rollback
from pincompute.api.names import CONTENT_ANNOTATION, REVISION_ANNOTATION
from pincompute.objects.content import Object
from pincompute.planning.edits import apply_change
from pincompute.planning.revision import SPEC_KEY
from pincompute.planning.revision_number import expected_revision, present_revision, revision_content
from pincompute.planning.snapshot import Native, Snapshot
from pincompute.planning.views.history import read_history
from pincompute.planning.views.plan_preview import LOCAL_CLUSTER
from planning.test_edits import NOW, RUNS_ON, SPECS, workload
from snapshot_strategies import plan_snapshot


class InterruptedOperator:
    """Plans a workload, and ends before some of its writes."""

    def __init__(self, kind: str) -> None:
        new = workload(kind)
        self.owner: Any = msgspec.structs.replace(new, status=type(new.status)())
        self.written: dict[str, Native] = {}
        self.content_by_number: dict[int, str] = {}
        self.wanted: tuple[Object, ...] = ()

    def edit(self, **spec: Any) -> None:
        metadata = self.owner.metadata
        self.owner = msgspec.structs.replace(
            self.owner,
            spec=msgspec.structs.replace(self.owner.spec, **spec),
            metadata=msgspec.structs.replace(metadata, generation=metadata.generation + 1),
        )

    def run_pass(self, *, writes_status: bool) -> None:
        planned = plan_snapshot(Snapshot(self.owner, tuple(self.written.values()), (), LOCAL_CLUSTER, NOW))
        self.wanted = planned.wanted
        for native in msgspec.convert(planned.wanted, list[Native]):
            if number := native.int_annotation(REVISION_ANNOTATION):
                self.written[f"{native.kind}/{native.metadata.name}"] = native
                content = native.metadata.annotations.get(CONTENT_ANNOTATION, revision_content(self.owner.spec))
                # Records and Jobs are immutable, so that another content of the same number could not be written.
                assert self.content_by_number.setdefault(number, content) == content
        if writes_status:
            self.owner = msgspec.structs.replace(self.owner, status=planned.status)

    def records(self) -> list[Object]:
        """Complete records of the last pass."""
        return [each for each in self.wanted if each["kind"] == "ConfigMap" and SPEC_KEY in each["data"]]

    @property
    def number(self) -> int:
        return present_revision(Snapshot(self.owner, tuple(self.written.values()), (), LOCAL_CLUSTER, NOW)).number


@given(
    kind=st.sampled_from(sorted(SPECS)),
    passes=st.lists(st.tuples(st.sampled_from(["hello:1", "hello:2", "hello:3"]), st.booleans()), max_size=8),
)
def test_no_number_gets_two_contents_after_interrupted_passes(kind: str, passes: list[tuple[str, bool]]) -> None:
    operator = InterruptedOperator(kind)
    for image, writes_status in passes:
        operator.edit(image=image)
        operator.run_pass(writes_status=writes_status)
    number = operator.number
    operator.run_pass(writes_status=True)
    assert operator.owner.status.revision == number == operator.number
    assert operator.owner.status.content == revision_content(operator.owner.spec)


@pytest.mark.parametrize("kind", sorted(SPECS))
def test_numbers_count_contents_from_one(kind: str) -> None:
    operator = InterruptedOperator(kind)
    numbers = []
    for image in ("hello:1", "hello:1", "hello:2", "hello:1"):
        operator.edit(image=image)
        operator.run_pass(writes_status=True)
        numbers.append(operator.owner.status.revision)
    assert numbers == [1, 1, 2, 3]


@pytest.mark.parametrize("kind", RUNS_ON)
def test_restart_and_pause_make_no_revision(kind: str) -> None:
    operator = InterruptedOperator(kind)
    operator.run_pass(writes_status=True)
    rollout = operator.owner.spec.rollout
    operator.edit(rollout=msgspec.structs.replace(rollout, restarts=1, paused="ann"))
    operator.run_pass(writes_status=True)
    assert operator.owner.status.revision == 1


def test_workload_of_an_earlier_version_keeps_its_number() -> None:
    """Its number was the generation, and its status and records have no content."""
    before: Any = workload("PinterestService", 7, status={"observedGeneration": 7})
    known = msgspec.structs.replace(before, status=msgspec.structs.replace(before.status, content=""))
    assert expected_revision(known).number == 7
    behind = msgspec.structs.replace(known, metadata=msgspec.structs.replace(known.metadata, generation=8))
    assert expected_revision(behind).number == 8


def test_lost_status_is_continued_from_the_records() -> None:
    operator = InterruptedOperator("PinterestService")
    for image in ("hello:1", "hello:2"):
        operator.edit(image=image)
        operator.run_pass(writes_status=True)
    # As after a restore from a backup.
    operator.owner = msgspec.structs.replace(operator.owner, status=type(operator.owner.status)())
    assert operator.number == 2
    operator.edit(image="hello:3")
    assert operator.number == 3


def test_rollback_of_a_batch_restores_fields_that_make_no_revision() -> None:
    """They are recorded as they were last, while the revision was the present one."""
    operator = InterruptedOperator("PinterestJobSet")
    operator.edit(deadline_seconds=600)
    operator.run_pass(writes_status=True)
    (first,) = (dict(each) for each in operator.records())
    operator.edit(image="hello:2", deadline_seconds=1)
    operator.run_pass(writes_status=True)
    past = read_history(operator.owner, [first, *operator.records()])
    restored: Any = apply_change(operator.owner, Rollback(to=1, partial=True), past).workload
    assert (restored.spec.image, restored.spec.deadline_seconds) == ("hello:dev", 600)

"""The remedy: a rollback to the last healthy revision, if the last change broke the workload."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from pincompute.api.status import find_condition
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem
from pincompute.base.reasons import CRASH_LOOP, OUT_OF_MEMORY, QUOTA_USED_UP, RUNTIME_PART_FAILING
from pincompute.objects.times import format_time
from pincompute.planning.diagnosis.remediation import add_remedy
from pincompute.planning.views.history import RevisionRecord
from planning.test_edits import past_of, workload

NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
CRASH = Problem(CRASH_LOOP, "the program exited 3 times", next="pin logs hello")


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def status_since(seconds: float, *, healthy: bool = False) -> dict[str, Any]:
    goal = {
        "type": "Ready",
        "status": "True" if healthy else "False",
        "reason": "CrashLoop",
        "message": "",
        "lastTransitionTime": format_time(at(seconds)),
    }
    return {"conditions": [goal]}


def revisions(
    *images: str, broke_after: float, healthy: bool = False, kind: str = "PinterestService"
) -> tuple[Workload, Any]:
    """One revision every minute; the workload broke this many seconds after the first."""
    owners = [workload(kind, generation=number, image=each) for number, each in enumerate(images, 1)]
    known = past_of(*owners)
    past = tuple(
        msgspec.structs.replace(each, created_at=format_time(at(60 * number))) for number, each in enumerate(known)
    )
    last = owners[-1]
    since = msgspec.convert(status_since(broke_after, healthy=healthy), type(last.status))
    status = msgspec.structs.replace(last.status, conditions=since.conditions)
    return msgspec.structs.replace(last, status=status), past


def remedied(owner: Workload, past: tuple[RevisionRecord, ...], problem: Problem = CRASH) -> Problem:
    goal = find_condition(owner.status.conditions, owner.GOAL)
    return add_remedy(owner, problem, goal, at(60 * (owner.metadata.generation - 1)), past)


@pytest.mark.parametrize(
    ("images", "broke_after", "to"),
    [
        (("a:1", "b:1"), 60, 1),
        (("a:1", "b:1"), 59, 1),
        (("a:1", "b:1", "c:1"), 120, 2),
        # Broken before its last change.
        (("a:1", "b:1", "c:1"), 61, 1),
        # Healthy for too long after its last change.
        (("a:1", "b:1"), 661, 0),
        # Never healthy.
        (("a:1", "b:1"), 0, 0),
        (("a:1",), 0, 0),
        # Equal to the earlier revision, so that a rollback would change nothing.
        (("a:1", "a:1"), 60, 0),
    ],
)
def test_suggests_rollback_to_last_healthy_revision(images: tuple[str, ...], broke_after: float, to: int) -> None:
    problem = remedied(*revisions(*images, broke_after=broke_after))
    assert problem.next == (f"pin rollback hello --to {to}" if to else "pin logs hello")


def test_note_has_the_change_and_the_other_remedy() -> None:
    problem = remedied(*revisions("a:1", "b:1", broke_after=60))
    assert problem.note == "healthy until its last change: image a:1 -> b:1\nto keep this change: pin logs hello"
    problem = remedied(*revisions("a:1", "b:1", "c:1", broke_after=61))
    assert problem.note.splitlines()[0] == "healthy until hello@2: image a:1 -> c:1"


def test_keeps_more_specific_remedy() -> None:
    rerun = Problem(OUT_OF_MEMORY, "1 of 3 tasks failed", next="pin rerun hello --reason OutOfMemory --memory 1Gi")
    assert remedied(*revisions("a:1", "b:1", broke_after=60), rerun) is rerun
    for_infrastructure = Problem(RUNTIME_PART_FAILING, "identity-1 fails", next="tell the infrastructure team")
    assert remedied(*revisions("a:1", "b:1", broke_after=60), for_infrastructure) is for_infrastructure


def test_no_rollback_for_healthy_workload_or_finished_work() -> None:
    assert remedied(*revisions("a:1", "b:1", broke_after=60, healthy=True)) is CRASH
    for kind in ("PinterestJobSet", "PinterestTrainingJob"):
        owner, past = revisions("a:1", "b:1", broke_after=60, kind=kind)
        done = msgspec.structs.replace(owner, status=msgspec.structs.replace(owner.status, done=1))
        assert remedied(done, past) is CRASH


def test_no_rollback_is_suggested_for_what_an_edit_broke() -> None:
    owner, past = revisions("a:1", "b:1", broke_after=300)
    goal = find_condition(owner.status.conditions, owner.GOAL)
    # Scaled after five minutes: the revision itself was healthy.
    assert add_remedy(owner, CRASH, goal, at(299), past).next == "pin logs hello"
    assert add_remedy(owner, CRASH, goal, at(60), past).next == "pin rollback hello --to 1"


@pytest.mark.parametrize(("ready", "next_"), [(1, "pin scale hello 1"), (0, "ask"), (3, "ask")])
def test_suggests_the_number_of_replicas_that_the_quota_allows(ready: int, next_: str) -> None:
    owner: Any = workload("PinterestService", replicas=3)
    owner = msgspec.structs.replace(owner, status=msgspec.structs.replace(owner.status, ready_replicas=ready))
    problem = Problem(QUOTA_USED_UP, "quota on-demand is used up", next="ask")
    assert add_remedy(owner, problem, None, None, ()).next == next_


def test_present_revision_is_dated_by_its_edit_if_its_record_came_later() -> None:
    """A busy operator records a revision after the workload has failed by it."""
    owner, past = revisions("a:1", "b:1", broke_after=62)
    late = (past[0], msgspec.structs.replace(past[1], created_at=format_time(at(75))))
    assert remedied(owner, late).next == "pin rollback hello --to 1"

"""What to type: back to what was well before the last change, where there was such a thing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from pincompute.api.workload import Workload
from pincompute.base.problem import Problem
from pincompute.base.reasons import CRASH_LOOP, OUT_OF_MEMORY, RUNTIME_PART_FAILING
from pincompute.objects.times import stamp
from pincompute.planning.people.cure import found
from pincompute.planning.people.history import Past
from planning.people.test_edits import past_of, workload

NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
CRASHES = Problem(CRASH_LOOP, "the program ended 3 times", next="pin logs hello")


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def since(seconds: float, *, well: bool = False) -> dict[str, Any]:
    goal = {
        "type": "Ready",
        "status": "True" if well else "False",
        "reason": "CrashLoop",
        "message": "",
        "lastTransitionTime": stamp(at(seconds)),
    }
    return {"conditions": [goal]}


def lives(*images: str, ceased: float, well: bool = False, kind: str = "PinterestService") -> tuple[Workload, Any]:
    """One revision every minute; it ceased to be well so many seconds after the first."""
    owners = [workload(kind, generation=number, image=each) for number, each in enumerate(images, 1)]
    known = past_of(*owners)
    past = tuple(msgspec.structs.replace(each, at=stamp(at(60 * number))) for number, each in enumerate(known))
    last = owners[-1]
    status = msgspec.convert(since(ceased, well=well), type(last.status))
    return msgspec.structs.replace(last, status=status), past


def told(owner: Workload, past: tuple[Past, ...], problem: Problem = CRASHES) -> Problem:
    return found(owner, problem, at(60 * (owner.metadata.generation - 1)), past)


@pytest.mark.parametrize(
    ("images", "ceased", "to"),
    [
        (("a:1", "b:1"), 60, 1),
        (("a:1", "b:1"), 59, 1),
        (("a:1", "b:1", "c:1"), 120, 2),
        # It was ailing before its last change.
        (("a:1", "b:1", "c:1"), 61, 1),
        # It was well for long with its last change.
        (("a:1", "b:1"), 661, 0),
        # It was never well.
        (("a:1", "b:1"), 0, 0),
        (("a:1",), 0, 0),
        # It is what it was then, and went on: that is no cure.
        (("a:1", "a:1"), 60, 0),
    ],
)
def test_it_goes_back_to_what_was_well(images: tuple[str, ...], ceased: float, to: int) -> None:
    problem = told(*lives(*images, ceased=ceased))
    assert problem.next == (f"pin rollback hello --to {to}" if to else "pin logs hello")


def test_it_says_what_changed_since_and_what_else_would_mend_it() -> None:
    problem = told(*lives("a:1", "b:1", ceased=60))
    assert problem.note == "it was well until its last change: image a:1 -> b:1\nto keep that: pin logs hello"
    problem = told(*lives("a:1", "b:1", "c:1", ceased=61))
    assert problem.note.splitlines()[0] == "it was well until hello@2: image a:1 -> c:1"


def test_what_mends_more_finely_stays() -> None:
    rerun = Problem(OUT_OF_MEMORY, "1 of 3 tasks failed", next="pin rerun hello --reason OutOfMemory --memory 1Gi")
    assert told(*lives("a:1", "b:1", ceased=60), rerun) is rerun
    theirs = Problem(RUNTIME_PART_FAILING, "identity-1 fails", next="tell the infrastructure team")
    assert told(*lives("a:1", "b:1", ceased=60), theirs) is theirs


def test_a_workload_that_is_well_or_whose_work_cannot_be_undone_stays() -> None:
    assert told(*lives("a:1", "b:1", ceased=60, well=True)) is CRASHES
    for kind in ("PinterestJobSet", "PinterestTrainingJob"):
        owner, past = lives("a:1", "b:1", ceased=60, kind=kind)
        done = msgspec.structs.replace(owner, status=msgspec.structs.replace(owner.status, done=1))
        assert told(done, past) is CRASHES

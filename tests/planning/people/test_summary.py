"""What a person is told of a workload: how far it is, and whether it will ever get there."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pincompute.api.kinds import WORKLOADS
from pincompute.api.summary import Summary
from pincompute.planning.people.summary import summarize


def told(kind: str, status: str, reason: str, **more: Any) -> Summary:
    goal = "Succeeded" if kind == "PinterestJobSet" else "Ready"
    condition = {"type": goal, "status": status, "reason": reason, "message": "m", "lastTransitionTime": "t"}
    document = {
        "kind": kind,
        "metadata": {"name": "a", "namespace": "me", "generation": 3},
        "spec": {"image": "a:1", "tasks": 12} if goal == "Succeeded" else {"image": "a:1", "port": 80, "replicas": 4},
        "status": {"observedGeneration": 3, "revision": 2, "conditions": [condition], **more},
    }
    return summarize(msgspec.convert(document, WORKLOADS[kind]))


@pytest.mark.parametrize(
    ("kind", "status", "reason", "more", "failed"),
    [
        ("PinterestService", "False", "Progressing", {}, False),
        ("PinterestService", "False", "ImagePullFailed", {}, True),
        ("PinterestService", "False", "CrashLoop", {}, True),
        ("PinterestService", "True", "Available", {}, False),
        # One program ended badly, and may be tried again.
        ("PinterestJobSet", "Unknown", "ProgramFailed", {}, False),
        ("PinterestJobSet", "Unknown", "TaskFailed", {"failed": 1}, False),
        # None can even start.
        ("PinterestJobSet", "Unknown", "ImagePullFailed", {}, True),
        ("PinterestJobSet", "False", "TaskFailed", {"failed": 1}, True),
        # Whoever has to act: it is over.
        ("PinterestJobSet", "False", "NodeLost", {}, True),
        ("PinterestJobSet", "True", "Succeeded", {}, False),
    ],
)
def test_whether_it_will_never_get_there(kind: str, status: str, reason: str, more: Any, failed: bool) -> None:
    assert told(kind, status, reason, **more).failed is failed


def test_tasks_count_as_done_and_copies_as_ready() -> None:
    progress = {"wanted": 4, "ready": 3}
    counted = told("PinterestJobSet", "Unknown", "Progressing", progress=progress, done=5)
    assert (counted.ready, counted.wanted, counted.label) == (5, 12, "a@2")
    counted = told("PinterestService", "False", "Progressing", progress=progress)
    assert (counted.ready, counted.wanted) == (3, 4)


def test_a_rerun_is_called_by_its_attempt() -> None:
    attempts = [{"number": number, "tasks": "0", "began": "t", "runtime": 0} for number in (1, 2)]
    assert told("PinterestJobSet", "True", "Succeeded", attempts=attempts[:1]).label == "a@2"
    assert told("PinterestJobSet", "True", "Succeeded", attempts=attempts).label == "a@2.2"


def test_what_nobody_has_looked_at_only_exists() -> None:
    new = told("PinterestService", "True", "Available", observedGeneration=2, progress={"wanted": 9, "ready": 9})
    assert (new.ready, new.wanted, new.done, new.label) == (0, 4, False, "a@3")

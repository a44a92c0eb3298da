"""Summary of a workload: its progress, and whether it has failed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pincompute.api.kinds import WORKLOADS
from pincompute.api.workload_summary import WorkloadSummary
from pincompute.planning.views.summary import summarize


def summary_of(kind: str, status: str, reason: str, **fields: Any) -> WorkloadSummary:
    goal = "Succeeded" if kind == "PinterestJobSet" else "Ready"
    condition = {"type": goal, "status": status, "reason": reason, "message": "m", "lastTransitionTime": "t"}
    document = {
        "kind": kind,
        "metadata": {"name": "a", "namespace": "me", "generation": 3},
        "spec": {"image": "a:1", "tasks": 12} if goal == "Succeeded" else {"image": "a:1", "port": 80, "replicas": 4},
        "status": {"observedGeneration": 3, "revision": 2, "conditions": [condition], **fields},
    }
    return summarize(msgspec.convert(document, WORKLOADS[kind]))


@pytest.mark.parametrize(
    ("kind", "status", "reason", "more", "failed"),
    [
        ("PinterestService", "False", "Progressing", {}, False),
        ("PinterestService", "False", "ImagePullFailed", {}, True),
        ("PinterestService", "False", "CrashLoop", {}, True),
        ("PinterestService", "True", "Available", {}, False),
        # A failed task may still be retried.
        ("PinterestJobSet", "Unknown", "ProgramFailed", {}, False),
        ("PinterestJobSet", "Unknown", "TaskFailed", {"failed": 1}, False),
        # No task can start.
        ("PinterestJobSet", "Unknown", "ImagePullFailed", {}, True),
        ("PinterestJobSet", "False", "TaskFailed", {"failed": 1}, True),
        # Failed, even if only the infrastructure team can act.
        ("PinterestJobSet", "False", "NodeLost", {}, True),
        ("PinterestJobSet", "True", "Succeeded", {}, False),
    ],
)
def test_failed_if_the_goal_cannot_be_reached(kind: str, status: str, reason: str, more: Any, failed: bool) -> None:
    assert summary_of(kind, status, reason, **more).failed is failed


def test_counts_tasks_as_done_and_replicas_as_ready() -> None:
    progress = {"wanted": 4, "ready": 3}
    counted = summary_of("PinterestJobSet", "Unknown", "Progressing", progress=progress, done=5)
    assert (counted.ready, counted.wanted, counted.label) == (5, 12, "a@2")
    counted = summary_of("PinterestService", "False", "Progressing", progress=progress, readyReplicas=3)
    assert (counted.ready, counted.wanted, counted.ready_text) == (3, 4, "3/4")


@pytest.mark.parametrize(
    ("ready", "new", "text"), [(4, 0, "4/4 (0 new)"), (5, 1, "5/4 (1 new)"), (3, 3, "3/4"), (0, 0, "0/4")]
)
def test_counts_all_replicas_that_serve_and_beside_them_the_new_ones(ready: int, new: int, text: str) -> None:
    progress = {"wanted": 4, "ready": new}
    counted = summary_of("PinterestService", "False", "CrashLoop", progress=progress, readyReplicas=ready)
    assert (counted.ready, counted.progress.ready, counted.ready_text) == (ready, new, text)


def test_label_of_a_rerun_has_its_attempt() -> None:
    attempts = [{"number": number, "tasks": "0", "began": "t", "runtime": 0} for number in (1, 2)]
    assert summary_of("PinterestJobSet", "True", "Succeeded", attempts=attempts[:1]).label == "a@2"
    assert summary_of("PinterestJobSet", "True", "Succeeded", attempts=attempts).label == "a@2.2"


def test_unobserved_generation_is_only_submitted() -> None:
    new = summary_of("PinterestService", "True", "Available", observedGeneration=2, progress={"wanted": 9, "ready": 9})
    assert (new.ready, new.wanted, new.done, new.label) == (0, 4, False, "a@3")
    new = summary_of("PinterestService", "True", "Available", observedGeneration=2, readyReplicas=9)
    assert (new.ready_text, new.done) == ("9/4 (0 new)", False)

"""In-place updates of several Jobs: one after the other, and none after a failing sidecar."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pincompute.planning.observed_pods import Pod
from pincompute.planning.pods.pod import BuiltTemplate
from pincompute.planning.runtimes.in_place import TemplateChange, update_running_work
from pincompute.planning.snapshot import Snapshot
from runtime_builders import CLUSTER, NOW

LABELS = {"pinterest.com/template": "new", "pinterest.com/shape": "same"}
BUILT = BuiltTemplate(
    {"metadata": {"labels": LABELS}, "spec": {"initContainers": [{"name": "logs", "image": "logs:2"}]}},
    runtime=42,
    parts=("logs-2",),
    sidecars=("logs",),
)
LONG_AGO, JUST_NOW = "2026-01-31T11:59:00Z", "2026-01-31T11:59:59Z"


def former(name: str) -> Pod:
    return _pod(name, "old", "logs:1", LONG_AGO, {}, ready=True)


def updated(name: str, *, since: str = LONG_AGO, ready: bool = True) -> Pod:
    return _pod(name, "new", "logs:2", since, {"pinterest.com/ran": "logs=0@logs:1"}, ready=ready)


def _pod(name: str, template: str, image: str, since: str, annotations: dict[str, str], *, ready: bool) -> Pod:
    labels = {**LABELS, "pinterest.com/template": template}
    state = {"running": {"startedAt": since}} if ready else {"waiting": {"reason": "CrashLoopBackOff"}}
    status = {"name": "logs", "image": image, "ready": ready, "restartCount": 1, "state": state}
    body: dict[str, Any] = {
        "metadata": {"name": name, "uid": name, "labels": labels, "annotations": annotations},
        "spec": {"initContainers": [{"name": "logs", "image": image}]},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": str(ready)}],
            "initContainerStatuses": [status],
        },
    }
    return msgspec.convert(body, Pod)


@pytest.mark.parametrize(
    ("jobs", "patched", "recheck_after_s"),
    [
        ([[former("a")], [former("b")]], ["a"], None),
        ([[updated("a")], [former("b")], [former("c")]], ["b"], None),
        ([[updated("a")], [updated("b", since=JUST_NOW)], [former("c")]], ["c"], None),
        # The very first pod is observed; if it fails, no other pod follows.
        ([[updated("a", since=JUST_NOW)], [former("b")]], [], 4.0),
        ([[updated("a", ready=False)], [former("b")]], [], None),
        ([[updated("a")], [updated("b", ready=False)], [former("c")]], [], None),
        ([[updated("a")], [updated("b")]], [], None),
        ([], [], None),
    ],
)
def test_updates_one_job_after_the_other(
    jobs: list[list[Pod]], patched: list[str], recheck_after_s: float | None
) -> None:
    snapshot = Snapshot(None, (), (), CLUSTER, NOW)
    update = update_running_work([TemplateChange(snapshot, BUILT, tuple(pods), len(pods), "100%") for pods in jobs])
    assert ([each.name for each in update.steps], update.recheck_after_s) == (patched, recheck_after_s)

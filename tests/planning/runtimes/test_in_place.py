"""Work of many makers: one after the other, and none after one whose part fails."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fleets import CLUSTER, NOW
from pincompute.planning.pods.pod import Made
from pincompute.planning.runtimes.in_place import Change, of_work
from pincompute.planning.snapshot import Pod, Snapshot

LABELS = {"pinterest.com/template": "new", "pinterest.com/shape": "same"}
MADE = Made(
    {"metadata": {"labels": LABELS}, "spec": {"initContainers": [{"name": "logs", "image": "logs:2"}]}},
    runtime=42,
    parts=("logs-2",),
    sidecars=("logs",),
)
LONG_AGO, JUST_NOW = "2026-01-31T11:59:00Z", "2026-01-31T11:59:59Z"


def former(name: str) -> Pod:
    return _pod(name, "old", "logs:1", LONG_AGO, {}, ready=True)


def changed(name: str, *, since: str = LONG_AGO, ready: bool = True) -> Pod:
    return _pod(name, "new", "logs:2", since, {"pinterest.com/ran": "logs=0@logs:1"}, ready=ready)


def _pod(name: str, template: str, image: str, since: str, annotations: dict[str, str], *, ready: bool) -> Pod:
    labels = {**LABELS, "pinterest.com/template": template}
    state = {"running": {"startedAt": since}} if ready else {"waiting": {"reason": "CrashLoopBackOff"}}
    said = {"name": "logs", "image": image, "ready": ready, "restartCount": 1, "state": state}
    body: dict[str, Any] = {
        "metadata": {"name": name, "uid": name, "labels": labels, "annotations": annotations},
        "spec": {"initContainers": [{"name": "logs", "image": image}]},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": str(ready)}],
            "initContainerStatuses": [said],
        },
    }
    return msgspec.convert(body, Pod)


@pytest.mark.parametrize(
    ("makers", "given", "again"),
    [
        ([[former("a")], [former("b")]], ["a"], None),
        ([[changed("a")], [former("b")], [former("c")]], ["b"], None),
        ([[changed("a")], [changed("b", since=JUST_NOW)], [former("c")]], ["c"], None),
        # The first of all is watched, and where it fails nobody follows.
        ([[changed("a", since=JUST_NOW)], [former("b")]], [], 4.0),
        ([[changed("a", ready=False)], [former("b")]], [], None),
        ([[changed("a")], [changed("b", ready=False)], [former("c")]], [], None),
        ([[changed("a")], [changed("b")]], [], None),
        ([], [], None),
    ],
)
def test_one_maker_after_the_other(makers: list[list[Pod]], given: list[str], again: float | None) -> None:
    snapshot = Snapshot(None, (), (), CLUSTER, NOW)
    way = of_work([Change(snapshot, MADE, tuple(pods), len(pods), "100%") for pods in makers])
    assert ([each.name for each in way.steps], way.look_again) == (given, again)

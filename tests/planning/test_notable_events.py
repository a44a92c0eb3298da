"""Events: one for each problem that comes or goes, none for what goes as planned."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pincompute.api.status import Condition, WorkloadStatus
from pincompute.objects.field_managers import ForeignEdit
from pincompute.planning.notable_events import drift_event, status_events
from runtime_builders import build_resource


def status(generation: int, word: str = "", reason: str = "", message: str = "m", when: str = "t") -> WorkloadStatus:
    ready = Condition(type="Ready", status=word, reason=reason, message=message, last_transition_time=when)
    return WorkloadStatus(observed_generation=generation, conditions=[ready] if word else [])


def owner(before: WorkloadStatus) -> Any:
    spec = {"image": "web:1", "port": 80}
    body = {"kind": "PinterestService", "metadata": {"name": "web", "project": "me"}, "spec": spec}
    return msgspec.structs.replace(build_resource(body), status=before)


NEW, PROGRESSING, READY = status(0), status(1, "False", "Progressing"), status(1, "True", "Available")
CRASHING, OUT_OF_MEMORY = status(1, "False", "CrashLoop"), status(1, "False", "OutOfMemory")


@pytest.mark.parametrize(
    ("before", "after", "events"),
    [
        (NEW, PROGRESSING, []),
        (PROGRESSING, READY, []),
        (PROGRESSING, msgspec.structs.replace(PROGRESSING, next="x"), []),
        (PROGRESSING, CRASHING, [("CrashLoop", "m", True)]),
        (CRASHING, status(1, "False", "CrashLoop", "twice"), []),
        (CRASHING, OUT_OF_MEMORY, [("OutOfMemory", "m", True)]),
        (CRASHING, READY, [("Recovered", "recovered from CrashLoop: m", False)]),
        (CRASHING, PROGRESSING, [("Recovered", "recovered from CrashLoop: m", False)]),
        (READY, READY, []),
        (READY, PROGRESSING, []),
        (READY, status(2, "False", "NotOwned"), [("NotOwned", "m", True)]),
    ],
)
def test_emits_one_event_per_problem_that_comes_or_goes(
    before: WorkloadStatus, after: WorkloadStatus, events: list[tuple[str, str, bool]]
) -> None:
    assert [(each.reason, each.note, each.warning) for each in status_events(owner(before), after)] == events


def test_event_name_is_equal_for_equal_transitions_only() -> None:
    (first,), (again,) = status_events(owner(PROGRESSING), CRASHING), status_events(owner(PROGRESSING), CRASHING)
    (later,) = status_events(owner(status(1, "False", "Progressing", when="later")), CRASHING)
    assert first.name == again.name
    assert first.name.startswith("web.")
    assert first.name != later.name


def test_drift_event_names_managers_and_hides_secrets() -> None:
    edits = [
        ForeignEdit("spec.replicas", 5, 3, "kubectl"),
        ForeignEdit("spec.containers.web.image", "web:2", "web:1", "kubectl-edit"),
        ForeignEdit("spec.containers.web.env.PASSWORD.value", "hunter2", "other", "kubectl-edit"),
        ForeignEdit("spec.containers.web.env.MORE", {"name": "MORE", "value": "hunter2"}, None, "tool", "/spec/0"),
        ForeignEdit("metadata.labels.app", None, "web", ""),
    ]
    native = {"kind": "Deployment", "metadata": {"name": "web"}}
    assert drift_event(owner(READY), native, "7", edits).note == (
        "manual edit of Deployment/web reverted: spec.replicas was set to 5 instead of 3 by kubectl; "
        "spec.containers.web.image was set to web:2 instead of web:1 by kubectl-edit; "
        "spec.containers.web.env.PASSWORD.value was changed by kubectl-edit; "
        "spec.containers.web.env.MORE was added by tool; metadata.labels.app was removed"
    )

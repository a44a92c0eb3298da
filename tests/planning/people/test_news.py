"""What is worth an Event: each change of state once, and nothing while all goes on."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fleets import noun
from pincompute.api.status import Condition, Status
from pincompute.objects.managers import Edit
from pincompute.planning.people.news import news, put_back


def status(generation: int, word: str = "", reason: str = "", message: str = "m", when: str = "t") -> Status:
    ready = Condition(type="Ready", status=word, reason=reason, message=message, last_transition_time=when)
    return Status(observed_generation=generation, conditions=[ready] if word else [])


def owner(before: Status) -> Any:
    spec = {"image": "web:1", "port": 80}
    body = {"kind": "PinterestService", "metadata": {"name": "web", "project": "me"}, "spec": spec}
    return msgspec.structs.replace(noun(body), status=before)


NEW, WORKS, READY = status(0), status(1, "False", "Progressing"), status(1, "True", "Available")
FAILS, WORSE = status(1, "False", "CrashLoop"), status(1, "False", "OutOfMemory")


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (NEW, WORKS, [("RolloutBegan", "web@1 is being made so", False)]),
        (WORKS, READY, [("Available", "web@1: m", False)]),
        (WORKS, msgspec.structs.replace(WORKS, next="x"), []),
        (WORKS, FAILS, [("CrashLoop", "m", True)]),
        (FAILS, status(1, "False", "CrashLoop", "twice"), []),
        (FAILS, WORSE, [("OutOfMemory", "m", True)]),
        (FAILS, READY, [("Recovered", "CrashLoop is over: m", False)]),
        (FAILS, WORKS, [("Recovered", "CrashLoop is over: m", False)]),
        (READY, READY, []),
        (READY, WORKS, []),
        (
            READY,
            status(2, "False", "NotOurs"),
            [("RolloutBegan", "web@2 is being made so", False), ("NotOurs", "m", True)],
        ),
    ],
)
def test_news(before: Status, after: Status, told: list[tuple[str, str, bool]]) -> None:
    assert [(each.reason, each.note, each.warning) for each in news(owner(before), after)] == told


def test_the_same_is_called_the_same_and_another_time_is_another() -> None:
    (first,), (again,) = news(owner(WORKS), FAILS), news(owner(WORKS), FAILS)
    (later,) = news(owner(status(1, "False", "Progressing", when="later")), FAILS)
    assert first.name == again.name
    assert first.name.startswith("web.")
    assert first.name != later.name


def test_whose_edit_was_put_back_and_no_secret() -> None:
    edits = [
        Edit("spec.replicas", 5, 3, "kubectl"),
        Edit("spec.containers.web.image", "web:2", "web:1", "kubectl-edit"),
        Edit("spec.containers.web.env.PASSWORD.value", "hunter2", "other", "kubectl-edit"),
        Edit("spec.containers.web.env.MORE", {"name": "MORE", "value": "hunter2"}, None, "tool", "/spec/0"),
        Edit("metadata.labels.app", None, "web", ""),
    ]
    native = {"kind": "Deployment", "metadata": {"name": "web"}}
    assert put_back(owner(READY), native, "7", edits).note == (
        "Deployment/web was edited by hand and is as before: spec.replicas was set to 5 instead of 3 by kubectl; "
        "spec.containers.web.image was set to web:2 instead of web:1 by kubectl-edit; "
        "spec.containers.web.env.PASSWORD.value was changed by kubectl-edit; "
        "spec.containers.web.env.MORE was added by tool; metadata.labels.app was removed"
    )

"""What is answered to why: from the same corpus as the loop's cause, and finer where events know more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from pincompute.api.names import WORKLOAD
from pincompute.api.service import PinterestService
from pincompute.api.stateful_set import PinterestStatefulSet
from pincompute.api.status import Status
from pincompute.api.wire import Metadata
from pincompute.base.problem import Problem
from pincompute.base.reasons import CLAIM_NOT_BOUND, CRASH_LOOP, NOT_MADE, NOT_PREPARED, Reason
from pincompute.planning.people.answer import answer, told
from pincompute.planning.people.events import Event, Family, folded
from pincompute.planning.people.preview import LAPTOP
from pincompute.planning.snapshot import Pod, Snapshot
from pincompute.planning.why.evidence import sharpened

NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
AN_HOUR = timedelta(hours=1)


def owner(generation: int = 1, **status: Any) -> PinterestService:
    metadata = {"name": "hello", "namespace": "me", "uid": "owner-1", "generation": generation}
    whole = {"metadata": metadata, "spec": {"image": "hello:dev", "port": 8080}, "status": status}
    return msgspec.convert(whole, PinterestService)


def snapshot(of: PinterestService, *pods: Pod) -> Snapshot:
    return Snapshot(of, (), pods, LAPTOP, NOW)


def event(reason: str, note: str, name: str = "hello-1", *, at: str = "2026-01-31T11:59:00Z", **more: Any) -> Event:
    regarding = {"kind": "Pod", "name": name, "uid": more.pop("uid", "")}
    metadata = {"name": f"{name}.{reason}.{note}", "creationTimestamp": at}
    said = {"metadata": metadata, "type": "Warning", "reason": reason, "note": note, "regarding": regarding, **more}
    return msgspec.convert(said, Event)


QUOTA = (
    'pods "hello-1" is forbidden: exceeded quota: on-demand, requested: requests.cpu=2, '
    "used: requests.cpu=9, limited: requests.cpu=10"
)
SECRET = 'MountVolume.SetUp failed for volume "keys" : secret "keys" not found'


@pytest.mark.parametrize(
    ("coarse", "reason", "note", "told_", "next_"),
    [
        (NOT_MADE, "FailedCreate", QUOTA, "QuotaUsedUp", "ask for less cpu"),
        (NOT_PREPARED, "FailedMount", SECRET, "ConfigurationMissing", "kubectl create secret generic keys -n me"),
        (NOT_PREPARED, "FailedMount", "timed out waiting", "NotPrepared", "coarse next"),
        (CLAIM_NOT_BOUND, "ProvisioningFailed", "no class 'fast'", "ClaimNotBound", "coarse next"),
        (CRASH_LOOP, "FailedMount", SECRET, "CrashLoop", "coarse next"),
    ],
)
def test_events_make_a_coarse_cause_a_fine_one(coarse: Reason, reason: str, note: str, told_: str, next_: str) -> None:
    problem = Problem(coarse, "coarse", note="coarse note", next="coarse next")
    finer = sharpened(snapshot(owner()), problem, [event(reason, note)])
    assert finer.reason.code == told_
    assert next_ in finer.next
    assert (finer == problem) is (coarse is CRASH_LOOP)


def test_the_newest_event_counts_and_ordinary_ones_do_not() -> None:
    problem = Problem(NOT_PREPARED, "coarse")
    old = event("FailedMount", "old", at="2026-01-31T11:00:00Z")
    new = event("FailedMount", "new", at="2026-01-31T11:59:00Z")
    usual = event("FailedMount", "usual", at="2026-01-31T11:59:30Z", type="Normal")
    assert sharpened(snapshot(owner()), problem, [new, old, usual]).note == "new"


SECURITY = (
    'create Pod db-1 in StatefulSet db failed error: pods "db-1" is forbidden: '
    'violates PodSecurity "restricted:latest": '
    "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)"
)
EXISTS = 'create Pod db-1 in StatefulSet db failed error: object is being deleted: pods "db-1" already exists'
REFUSED, LATER = "2026-01-31T11:59:30Z", "2026-01-31T11:59:40Z"


def store(copies: int, made: str = "2026-01-31T11:00:00Z") -> Snapshot:
    """A stateful system of two, of which so many copies are there."""
    metadata = {"name": "db", "namespace": "me", "uid": "owner-1", "generation": 2}
    status = {"observedGeneration": 2}
    whole = {"metadata": metadata, "spec": {"image": "db:1", "port": 5432, "replicas": 2}, "status": status}
    labels = {WORKLOAD: "db"}
    pods = [
        {"metadata": {"name": f"db-{index}", "uid": f"pod-{index}", "labels": labels, "creationTimestamp": made}}
        for index in range(copies)
    ]
    found = msgspec.convert(whole, PinterestStatefulSet)
    return Snapshot(found, (), msgspec.convert(pods, tuple[Pod, ...]), LAPTOP, NOW)


def unmade_event(note: str, reason: str = "FailedCreate", at: str = REFUSED, **more: Any) -> Event:
    return event(reason, note, "db-1", at=at, uid="owner-1", **more)


@pytest.mark.parametrize(
    ("there", "events", "told_"),
    [
        (store(1), [unmade_event(SECURITY)], "PodSecurity"),
        # The first three times a quota may have had a moment without room.
        (store(1), [unmade_event(QUOTA, deprecatedCount=2)], "Progressing"),
        (store(1), [unmade_event(QUOTA, deprecatedCount=3)], "QuotaUsedUp"),
        # It was made in the end, or is there, or its name is taken for a moment.
        (
            store(1),
            [unmade_event(SECURITY), unmade_event("made", "SuccessfulCreate", LATER, type="Normal")],
            "Progressing",
        ),
        (store(1, made=LATER), [unmade_event(SECURITY)], "Progressing"),
        (store(2), [unmade_event(SECURITY)], "Progressing"),
        (store(1), [unmade_event(EXISTS)], "Progressing"),
    ],
)
def test_a_copy_that_is_not_made_beside_others_is_told_by_the_event(
    there: Snapshot, events: list[Event], told_: str
) -> None:
    found = answer(there, events, None)
    assert (found.reason, found.wrong) == (told_, told_ != "Progressing")


def test_an_operator_that_does_not_look_is_told_first_and_only_after_a_while() -> None:
    behind = snapshot(owner(2, observedGeneration=1))
    assert answer(behind, [], NOW - timedelta(seconds=60)).reason == "OperatorSilent"
    assert not answer(behind, [], NOW - timedelta(seconds=5)).wrong
    assert not answer(snapshot(owner(2, observedGeneration=2)), [], NOW - timedelta(seconds=60)).wrong


def test_what_is_kept_still_on_purpose_is_not_wrong() -> None:
    paused = msgspec.convert({"port": 8080, "image": "a", "rollout": {"paused": "ann"}}, type(owner().spec))
    kept = answer(snapshot(msgspec.structs.replace(owner(), spec=paused)), [], None)
    assert (kept.wrong, kept.reason, kept.next) == (False, "Paused", "pin resume hello")


def test_an_edit_that_was_put_back_is_told_for_a_while() -> None:
    note = "Deployment/hello was edited by hand and is as before: spec.replicas was set to 5 instead of 1 by ann"
    for at, words in (("2026-01-31T11:55:00Z", note), ("2026-01-31T11:45:00Z", "")):
        edit = event("PutBack", note, "hello", at=at, uid="owner-1")
        well = answer(snapshot(owner(1, observedGeneration=1)), [edit], None)
        assert (well.wrong, well.note) == (False, words)
    wrong = answer(
        snapshot(owner(2, observedGeneration=1)), [edit, event("PutBack", note, uid="owner-1")], NOW - AN_HOUR
    )
    assert (wrong.reason, wrong.note) == ("OperatorSilent", note)


def test_what_only_acting_brings_to_light_is_told_from_the_status() -> None:
    foreign = {
        "type": "Ready",
        "status": "False",
        "reason": "NotOurs",
        "message": "Service/hello is somebody else's",
        "lastTransitionTime": "2026-01-31T11:00:00Z",
    }
    found = owner(1, observedGeneration=1, conditions=[foreign], next="rename it")
    for each in (answer(snapshot(found), [], None), told(found)):
        assert (each.wrong, each.reason, each.what, each.next) == (
            True,
            "NotOurs",
            "Service/hello is somebody else's",
            "rename it",
        )
    assert not told(msgspec.structs.replace(found, status=Status())).wrong


@pytest.mark.parametrize(
    ("generation", "reason", "wrong"), [(1, "NotOurs", True), (2, "NotOurs", False), (1, "CrashLoop", False)]
)
def test_what_acting_brought_to_light_is_told_however_well_all_copies_are(
    generation: int, reason: str, wrong: bool
) -> None:
    said = {"type": "Ready", "status": "False", "reason": reason, "lastTransitionTime": "2026-01-31T11:00:00Z"}
    found = owner(generation, observedGeneration=1, conditions=[{**said, "message": "words"}])
    well = msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, replicas=0))
    told_ = answer(snapshot(well), [], None)
    assert (told_.wrong, told_.what == "words") == (wrong, wrong)


def test_events_are_told_once_with_how_often_and_the_newest_last() -> None:
    events = [
        event("BackOff", "Back-off restarting hello-7c9d8f6b5-x2x4q", "hello-7c9d8f6b5-x2x4q", deprecatedCount=3),
        event("BackOff", "Back-off restarting hello-7c9d8f6b5-b2b4c", "hello-7c9d8f6b5-b2b4c"),
        event("Killing", "token=hunter2", at="2026-01-31T11:00:00Z", type="Normal"),
    ]
    first, last = folded(events)
    assert (first.reason, first.note, first.warning, first.count) == ("Killing", "token=***", False, 1)
    assert (last.about, last.note, last.warning, last.count) == ("2 Pods", "Back-off restarting hello-…", True, 4)


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("hello", True),
        ("hello-7c9d8f6b5", True),
        ("hello-7c9d8f6b5-x2x4q", True),
        ("hello-0", True),
        ("hello-two", False),
        ("hello-two-7c9d8f6b5", False),
        ("resize-1-1-3-x2x4q", True),
        ("resize-1-10-3-x2x4q", False),
    ],
)
def test_events_of_what_is_gone_are_known_by_its_name(name: str, ours: bool) -> None:
    family = Family(frozenset(("uid-1",)), frozenset(("hello", "resize-1-1")))
    assert family.has(event("A", "b", name)) is ours
    assert family.has(event("A", "b", "anything", uid="uid-1"))


def test_metadata_without_a_time_is_read() -> None:
    assert Event(metadata=Metadata(name="a")).last == ""

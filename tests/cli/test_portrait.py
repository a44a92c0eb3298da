"""What a person sees of one workload, written out whole."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from pincompute.api.account import Answer
from pincompute.api.kinds import WORKLOADS
from pincompute.base.problem import Refused
from pincompute.cli import why
from pincompute.cli.ages import duration
from pincompute.cli.portrait import portrait, tasks_of
from pincompute.cli.word import Word, word

NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
CREATED = "2026-01-31T11:56:48Z"


def drawn(kind: str, spec: dict[str, Any], status: dict[str, Any]) -> str:
    metadata = {"name": "resize", "namespace": "me", "generation": 1, "creationTimestamp": CREATED}
    whole = {"metadata": metadata, "kind": kind, "spec": {"image": "hello:dev", **spec}}
    return portrait(msgspec.convert({**whole, "status": {"observedGeneration": 1, **status}}, WORKLOADS[kind]), NOW)


def condition(type_: str, status: str, reason: str, message: str) -> dict[str, str]:
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": CREATED}


def test_a_batch_counts_what_is_done_and_groups_what_failed_by_its_cause() -> None:
    failures = [
        {"reason": "OutOfMemory", "exitCode": 137, "tasks": "17,88,203,204,391", "count": 5},
        {"reason": "TaskFailed", "exitCode": 3, "message": "bad JPEG header", "tasks": "12,470", "count": 2},
    ]
    told = drawn(
        "PinterestJobSet",
        {"tasks": 500, "memory": "512Mi"},
        {
            "revision": 1,
            "tasks": 500,
            "done": 493,
            "failed": 7,
            "failures": failures,
            "attempts": [{"number": 1, "began": CREATED, "ended": "2026-01-31T12:00:00Z"}],
            "conditions": [condition("Succeeded", "False", "OutOfMemory", "493 of 500 done, 7 failed")],
        },
    )
    assert told == (
        "resize@1  493 done  7 failed  of 500   3m12s\n"
        "  5  OutOfMemory 512Mi         tasks 17 88 203 204 391  "
        "next: pin rerun resize --reason OutOfMemory --memory 1Gi\n"
        '  2  exit 3 "bad JPEG header"  tasks 12 470             next: pin logs resize/12\n'
    )


def test_a_batch_that_goes_on_tells_what_is_tried_again_and_what_else_keeps_it() -> None:
    told = drawn(
        "PinterestJobSet",
        {"tasks": 9},
        {
            "revision": 1,
            "tasks": 9,
            "done": 3,
            "failed": 1,
            "running": 4,
            "retrying": 2,
            "failures": [{"reason": "TaskFailed", "exitCode": 3, "tasks": "7", "count": 1}],
            "attempts": [{"number": 1, "began": CREATED}],
            "conditions": [condition("Succeeded", "Unknown", "Unschedulable", "no node can take a task")],
        },
    )
    first, failure, *others = told.splitlines()
    assert first == "resize@1  3 done  1 failed  4 running  2 tried again  of 9   3m12s"
    assert failure.startswith("  1  exit 3  tasks 7")
    assert others[0] == "  no node can take a task  [Unschedulable]"


def test_a_service_that_is_not_well_says_why_and_what_to_type() -> None:
    told = drawn(
        "PinterestService",
        {"port": 8080, "replicas": 2},
        {
            "revision": 1,
            "runtime": 42,
            "parts": ["identity-1", "logs-2"],
            "address": "http://resize.me.localhost:8080",
            "next": "pin logs resize",
            "progress": {"wanted": 2, "ready": 1},
            "conditions": [condition("Ready", "False", "CrashLoop", "the program ends again and again")],
        },
    )
    assert told == (
        "resize@1  1 of 2 copies so far   3m12s\n"
        "  address    http://resize.me.localhost:8080\n"
        "  image      hello:dev\n"
        "  runtime    42 (identity-1 logs-2)\n"
        "  the program ends again and again  [CrashLoop]\n"
        "  next: pin logs resize\n"
    )


def test_a_long_list_of_tasks_is_cut_between_two_of_them() -> None:
    assert tasks_of("12,470") == "12 470"
    assert tasks_of(",".join(str(each) for each in range(100, 200))) == "100 101 102 103 104 105 106 107 108 109 …"


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(-3, "0s"), (0, "0s"), (59.9, "59s"), (192, "3m12s"), (3600, "1h"), (7500, "2h5m"), (90_061, "1d1h")],
)
def test_ages_are_two_words_at_most(seconds: float, told: str) -> None:
    assert duration(seconds) == told


@pytest.mark.parametrize(
    "said", ["service/web", "pts/web", "PinterestService/web", "services/web", "pinterestservice/web"]
)
def test_a_kind_may_stand_before_a_name(said: str) -> None:
    assert word(said) == Word("web", "PinterestService")
    assert word("job-set/web") == Word("web", "PinterestJobSet")
    word("web").must_be("PinterestDaemon")
    with pytest.raises(Refused, match="there is no service 'web'"):
        word(said).must_be("PinterestDaemon")
    with pytest.raises(Refused, match="there is no kind 'deployment'"):
        word("deployment/web")


def test_an_answer_is_told_with_its_evidence_and_for_whom_it_waits() -> None:
    answer = Answer(
        label="web@4",
        wrong=True,
        reason="CrashLoop",
        what="the program ends again and again",
        where="pod web-1 container web",
        note="exit 1\nno database",
        next="pin logs web",
        waits="you",
    )
    assert why.told(answer) == (
        "web@4: the program ends again and again  [CrashLoop]\n"
        "  seen in pod web-1 container web\n"
        "  exit 1\n"
        "  no database\n"
        "  waits for you\n"
        "  next: pin logs web\n"
    )

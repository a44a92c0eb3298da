"""The output of `pin get NAME` and `pin why`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from pincompute.api.kinds import WORKLOADS
from pincompute.api.workload_detail import Diagnosis, OtherCause
from pincompute.base.problem import Refused
from pincompute.cli import why
from pincompute.cli.durations import format_duration
from pincompute.cli.workload_ref import WorkloadRef, parse_workload_ref
from pincompute.cli.workload_summary import format_workload, shorten_task_list

NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
CREATED = "2026-01-31T11:56:48Z"


def format_status(kind: str, spec: dict[str, Any], status: dict[str, Any]) -> str:
    metadata = {"name": "resize", "namespace": "me", "generation": 1, "creationTimestamp": CREATED}
    whole = {"metadata": metadata, "kind": kind, "spec": {"image": "hello:dev", **spec}}
    return format_workload(
        msgspec.convert({**whole, "status": {"observedGeneration": 1, **status}}, WORKLOADS[kind]), NOW
    )


def condition(type_: str, status: str, reason: str, message: str) -> dict[str, str]:
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": CREATED}


def test_batch_counts_tasks_and_groups_failures_by_cause() -> None:
    failures = [
        {"reason": "OutOfMemory", "exitCode": 137, "tasks": "17,88,203,204,391", "count": 5},
        {"reason": "TaskFailed", "exitCode": 3, "message": "bad JPEG header", "tasks": "12,470", "count": 2},
    ]
    output = format_status(
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
    assert output == (
        "resize@1  493 done  7 failed  of 500   3m12s\n"
        "  5  OutOfMemory 512Mi         tasks 17 88 203 204 391  "
        "next: pin rerun resize --reason OutOfMemory --memory 1Gi\n"
        '  2  exit 3 "bad JPEG header"  tasks 12 470             next: pin logs resize/12\n'
    )


def test_running_batch_shows_retries_and_its_problem() -> None:
    output = format_status(
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
    first, failure, *others = output.splitlines()
    assert first == "resize@1  3 done  1 failed  4 running  2 retrying  of 9   3m12s"
    assert failure.startswith("  1  exit 3  tasks 7")
    assert others[0] == "  no node can take a task  [Unschedulable]"


def test_failures_keep_the_memory_of_their_attempt_and_time_counts_all_attempts() -> None:
    output = format_status(
        "PinterestJobSet",
        {"tasks": 9, "memory": "256Mi", "attempts": [{"tasks": "3,5", "memory": "512Mi"}, {"tasks": "7"}]},
        {
            "revision": 1,
            "tasks": 9,
            "done": 6,
            "failed": 3,
            "failures": [{"reason": "OutOfMemory", "exitCode": 137, "tasks": "1,3,7", "count": 3}],
            "attempts": [
                {"number": 1, "tasks": "0-8", "began": "2026-01-31T08:00:00Z", "ended": "2026-01-31T08:10:00Z"},
                {"number": 2, "tasks": "3,5", "began": "2026-01-31T10:00:00Z", "ended": "2026-01-31T10:02:00Z"},
                {"number": 3, "tasks": "7", "began": CREATED},
            ],
            "conditions": [condition("Succeeded", "Unknown", "Progressing", "")],
        },
    )
    assert output == (
        "resize@1.3  6 done  3 failed  of 9   15m12s\n"
        "  1  OutOfMemory 256Mi  tasks 7, attempt 3  next: pin rerun resize --reason OutOfMemory --memory 512Mi\n"
        "  1  OutOfMemory 512Mi  tasks 3, attempt 2  next: pin rerun resize --reason OutOfMemory --memory 1Gi\n"
        "  1  OutOfMemory 256Mi  tasks 1, attempt 1  next: pin rerun resize --reason OutOfMemory --memory 512Mi\n"
    )


def test_cancelled_tasks_are_not_counted_as_failed() -> None:
    output = format_status(
        "PinterestJobSet",
        {"tasks": 3},
        {
            "revision": 1,
            "tasks": 3,
            "done": 1,
            "failed": 2,
            "failures": [
                {"reason": "TaskFailed", "exitCode": 3, "tasks": "0", "count": 1},
                {"reason": "Cancelled", "message": "cancelled by ann: too slow", "tasks": "2", "count": 1},
            ],
            "attempts": [{"number": 1, "began": CREATED}],
            "conditions": [condition("Succeeded", "False", "Cancelled", "1 of 3 done, 1 failed, 1 cancelled")],
        },
    )
    assert output == (
        "resize@1  1 done  1 failed  1 cancelled  of 3   3m12s\n"
        "  1  exit 3                      tasks 0  next: pin logs resize/0\n"
        "  1  cancelled by ann: too slow  tasks 2  next: pin rerun resize\n"
    )


def test_training_job_that_has_ended_counts_what_succeeded() -> None:
    status = {
        "revision": 1,
        "ended": "2026-01-31T12:00:00Z",
        "roles": [{"name": "master", "wanted": 1, "failed": 1}],
        "conditions": [condition("Succeeded", "False", "Cancelled", "cancelled by ann")],
    }
    running = {**status, "ended": "", "conditions": [condition("Succeeded", "Unknown", "Progressing", "")]}
    ended, others = (format_status("PinterestTrainingJob", {"image": "train:1"}, each) for each in (status, running))
    assert ended.startswith("resize@1  0 of 1 replicas succeeded   ")
    assert others.startswith("resize@1  0 of 1 replicas so far   ")


def test_failing_service_shows_reason_and_next_step() -> None:
    output = format_status(
        "PinterestService",
        {"port": 8080, "replicas": 2},
        {
            "revision": 1,
            "runtime": 42,
            "parts": ["identity-1", "logs-2"],
            "address": "http://resize.me.localhost:8080",
            "next": "pin logs resize",
            "readyReplicas": 1,
            "progress": {"wanted": 2, "ready": 1},
            "conditions": [condition("Ready", "False", "CrashLoop", "the program ends again and again")],
        },
    )
    assert output == (
        "resize@1  1 of 2 replicas so far   3m12s\n"
        "  address    http://resize.me.localhost:8080\n"
        "  image      hello:dev\n"
        "  runtime    42 (identity-1 logs-2)\n"
        "  the program ends again and again  [CrashLoop]\n"
        "  next: pin logs resize\n"
    )


def test_long_task_list_is_cut_between_numbers() -> None:
    assert shorten_task_list("12,470") == "12 470"
    assert (
        shorten_task_list(",".join(str(each) for each in range(100, 200)))
        == "100 101 102 103 104 105 106 107 108 109 …"
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0s"), (0, "0s"), (59.9, "59s"), (192, "3m12s"), (3600, "1h"), (7500, "2h5m"), (90_061, "1d1h")],
)
def test_duration_has_at_most_two_units(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    "text", ["service/web", "pts/web", "PinterestService/web", "services/web", "pinterestservice/web"]
)
def test_parses_kind_before_name(text: str) -> None:
    assert parse_workload_ref(text) == WorkloadRef("web", "PinterestService")
    assert parse_workload_ref("job-set/web") == WorkloadRef("web", "PinterestJobSet")
    parse_workload_ref("web").require_kind("PinterestDaemon")
    with pytest.raises(Refused, match="no service 'web'"):
        parse_workload_ref(text).require_kind("PinterestDaemon")
    with pytest.raises(Refused, match="no kind 'deployment'"):
        parse_workload_ref("deployment/web")


def test_diagnosis_shows_evidence_and_required_action() -> None:
    diagnosis = Diagnosis(
        label="web@4",
        is_problem=True,
        reason="CrashLoop",
        what="the program ends again and again",
        where="pod web-1 container web",
        note="exit 1\nno database",
        next="pin logs web",
        waits_for="you",
        also=OtherCause("QuotaUsedUp", "quota on-demand is used up"),
    )
    assert why.format_diagnosis(diagnosis) == (
        "web@4: the program ends again and again  [CrashLoop]\n"
        "  seen in pod web-1 container web\n"
        "  exit 1\n"
        "  no database\n"
        "  action: you\n"
        "  next: pin logs web\n"
        "  also: quota on-demand is used up  [QuotaUsedUp]\n"
    )
    assert why.format_path([]) == ""


def test_failed_revision_shows_that_former_replicas_serve() -> None:
    output = format_status(
        "PinterestService",
        {"port": 8080, "replicas": 3},
        {
            "revision": 1,
            "readyReplicas": 3,
            "progress": {"wanted": 3},
            "conditions": [condition("Ready", "False", "CrashLoop", "the program ends again and again")],
        },
    )
    assert output.splitlines()[0] == "resize@1  3 of 3 replicas ready (0 new)   3m12s"

"""Status of a PinterestJobSet."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from pincompute.api.status import WorkloadStatus
from pincompute.api.structs import StrictStruct


class TaskFailure(StrictStruct, frozen=True):
    """Tasks that failed for the same reason."""

    reason: Annotated[str, Meta(description="Reason of the failure, such as OutOfMemory.", max_length=64)]
    exit_code: Annotated[int, Meta(description="Exit code of the program, such as 137; 0 if unknown.")] = 0
    message: Annotated[str, Meta(description="Last log line of one of the tasks.", max_length=256)] = ""
    tasks: Annotated[str, Meta(description="Task numbers, such as 17,88,203-204.", max_length=65_536)] = ""
    count: Annotated[int, Meta(description="Number of tasks, such as 4.")] = 0


class AttemptStatus(StrictStruct, frozen=True):
    """Result of one attempt."""

    number: Annotated[int, Meta(description="Number of the attempt: 2 in resize@1.2.")]
    tasks: Annotated[str, Meta(description="Tasks of the attempt, such as 0-499.", max_length=65_536)] = ""
    began: Annotated[str, Meta(description="Start time, such as 2026-01-31T12:00:00Z.", max_length=32)] = ""
    ended: Annotated[str, Meta(description="End time; empty while the attempt runs.", max_length=32)] = ""
    runtime: Annotated[int, Meta(description="Runtime at the start of the attempt, such as 42.")] = 0
    done: Annotated[int, Meta(description="Tasks that succeeded, such as 493.")] = 0
    failed: Annotated[int, Meta(description="Tasks that failed, such as 7.")] = 0
    reason: Annotated[str, Meta(description="Result, such as Succeeded.", max_length=64)] = ""


class JobSetStatus(WorkloadStatus, frozen=True):
    """Progress of a job set. Kept after its pods are deleted."""

    work: Annotated[
        str, Meta(description="Hash of the work; a different hash means a new revision.", max_length=64)
    ] = ""
    tasks: Annotated[int, Meta(description="Number of tasks, such as 500.")] = 0
    done: Annotated[int, Meta(description="Tasks that have succeeded, such as 493.")] = 0
    failed: Annotated[
        int, Meta(description="Tasks that have failed and were not completed by a later attempt, such as 7.")
    ] = 0
    running: Annotated[int, Meta(description="Tasks that are running, such as 20.")] = 0
    retrying: Annotated[int, Meta(description="Failed tasks that are being retried, such as 2.")] = 0
    completed: Annotated[
        str, Meta(description="Tasks that have succeeded, such as 0-16,18-499.", max_length=65_536)
    ] = ""
    failures: Annotated[list[TaskFailure], Meta(description="Failed tasks, grouped by reason.", max_length=32)] = []
    attempts: Annotated[list[AttemptStatus], Meta(description="All attempts of this revision.", max_length=32)] = []

"""Claims of job set tasks, and reruns."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from pincompute.api.structs import StrictStruct, quantity_meta
from pincompute.objects.number_sets import NUMBERS_PATTERN

FAILED_TASKS = "failed"
FailureReason = Literal[
    "Any",
    "TaskFailed",
    "OutOfMemory",
    "DeadlineExceeded",
    "TooManyFailed",
    "CommandNotFound",
    "StartFailed",
    "Cancelled",
]


class TaskClaim(StrictStruct, frozen=True):
    """A claim of each task."""

    name: Annotated[
        str, Meta(description="Volume name, such as scratch.", pattern="^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=20)
    ]
    path: Annotated[str, Meta(description="Mount path, such as /scratch.", pattern="^/[^:]*$", max_length=256)]
    size: Annotated[int | str, quantity_meta("Size, such as 10Gi.")]
    class_: Annotated[
        str, Meta(description="Storage class, such as fast; the cluster's default class by default.", max_length=253)
    ] = msgspec.field(name="class", default="")
    retained: Annotated[
        bool,
        Meta(
            description="Keep the storage for later attempts, until the job set is deleted; for at most 100 tasks; "
            "false by default: it is deleted with the task."
        ),
    ] = False


class Attempt(StrictStruct, frozen=True):
    """A rerun of tasks after earlier attempts have ended, optionally with other resources."""

    tasks: Annotated[
        str,
        Meta(
            description="Task numbers, such as 17,88,203-204; failed by default: all tasks that have not succeeded.",
            pattern=f"^({FAILED_TASKS}|{NUMBERS_PATTERN})$",
            max_length=4096,
        ),
    ] = FAILED_TASKS
    reason: Annotated[
        FailureReason, Meta(description="Only tasks that failed for this reason, such as OutOfMemory; Any by default.")
    ] = "Any"
    cpu: Annotated[int | str, quantity_meta("CPU request of each task, such as 2; unchanged by default.")] = ""
    memory: Annotated[int | str, quantity_meta("Memory of each task, such as 1Gi; unchanged by default.")] = ""

"""What each task of a job set has for itself, and which tasks run again."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from pincompute.api.wire import Strict, amount
from pincompute.objects.numbers import NUMBERS_PATTERN

FAILED = "failed"
Cause = Literal[
    "Any", "TaskFailed", "OutOfMemory", "DeadlineExceeded", "TooManyFailed", "CommandNotFound", "StartFailed"
]


class TaskClaim(Strict, frozen=True):
    """Storage that each task has for itself."""

    name: Annotated[
        str, Meta(description="Its name, such as scratch.", pattern="^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=20)
    ]
    path: Annotated[
        str, Meta(description="Where the task sees it, such as /scratch.", pattern="^/[^:]*$", max_length=256)
    ]
    size: Annotated[int | str, amount("How large it is, such as 10Gi.")]
    class_: Annotated[
        str, Meta(description="Which kind of disk, such as fast; the cluster's own by default.", max_length=253)
    ] = msgspec.field(name="class", default="")
    retained: Annotated[
        bool,
        Meta(
            description="Kept from attempt to attempt, until the whole set is removed, for at most 100 tasks; "
            "false by default: it ends with the task."
        ),
    ] = False


class Attempt(Strict, frozen=True):
    """Tasks that run again after the attempts before have ended, with other resources where that helps."""

    tasks: Annotated[
        str,
        Meta(
            description="Which ones, such as 17,88,203-204; failed by default: those that are not done.",
            pattern=f"^({FAILED}|{NUMBERS_PATTERN})$",
            max_length=4096,
        ),
    ] = FAILED
    reason: Annotated[
        Cause, Meta(description="Only those that failed for this reason, such as OutOfMemory; Any by default.")
    ] = "Any"
    cpu: Annotated[int | str, amount("Processor time of each task this time, such as 2; as before by default.")] = ""
    memory: Annotated[int | str, amount("Memory of each task this time, such as 1Gi; as before by default.")] = ""

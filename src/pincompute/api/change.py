"""Changes to an existing workload that need no new file. Typed, so that the desk can record them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from pincompute.api.structs import StrictStruct
from pincompute.api.task import FAILED_TASKS, FailureReason

IMPORTED_PAUSE = "import: the existing pods are kept until the first change"
"""Value of `rollout.paused` on an imported workload, which keeps its existing pods until the first real change."""
FORMER_IMPORTED_PAUSE = "import: its copies are as they were found"  # former spelling of 0.1, read until 0.3


class RequestedChange(StrictStruct, frozen=True, tag_field="change", tag=str.lower):
    """Name that the caller gives for messages. It is not the authenticated identity."""

    by: Annotated[str, Meta(max_length=64)] = ""


class Scale(RequestedChange, frozen=True):
    """Set the number of replicas, or the parallelism of a job set."""

    replicas: Annotated[int, Meta(ge=0, le=10_000)] = 1


class Pause(RequestedChange, frozen=True):
    """Pause the rollout, or suspend the batch, until it is resumed."""

    because: Annotated[str, Meta(max_length=180)] = ""


class Resume(RequestedChange, frozen=True):
    """Resume what was paused."""


class Cancel(RequestedChange, frozen=True):
    """End a batch or a training job for good. What has finished keeps its results."""

    because: Annotated[str, Meta(max_length=180)] = ""


class Restart(RequestedChange, frozen=True):
    """Replace every replica by a rolling restart."""


class Rollback(RequestedChange, frozen=True):
    """Roll back to an earlier revision."""

    to: Annotated[int, Meta(ge=0)] = 0
    """Revision to restore; 0 for the last one that differs from the current."""
    partial: bool = False
    """Restore it even if the digest of an image was not recorded."""


class Rerun(RequestedChange, frozen=True):
    """Run finished work again: selected tasks, a whole training job, or one extra run of a cron job."""

    tasks: Annotated[str, Meta(max_length=4096)] = FAILED_TASKS
    reason: FailureReason = "Any"
    cpu: Annotated[str, Meta(max_length=32)] = ""
    memory: Annotated[str, Meta(max_length=32)] = ""


class Break(RequestedChange, frozen=True):
    """Inject a fault for practice."""

    fault: Annotated[str, Meta(max_length=64)] = ""
    silently: bool = False
    """Do not name the fault in status and messages: finding it is the exercise."""


class Heal(RequestedChange, frozen=True):
    """Remove an injected fault and restore the previous revision."""


Change = Scale | Pause | Resume | Cancel | Restart | Rollback | Rerun | Break | Heal

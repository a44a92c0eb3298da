"""What a person may ask of a workload that is there, beside a new file; typed, so that a desk can record it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from pincompute.api.task import FAILED, Cause
from pincompute.api.wire import Strict

AS_FOUND = "import: its copies are as they were found"
"""Who keeps the rollout still of what was imported: nobody has asked for new copies yet."""


class Asked(Strict, frozen=True, tag_field="change", tag=str.lower):
    """By whom, as that person calls themselves."""

    by: Annotated[str, Meta(max_length=64)] = ""


class Scale(Asked, frozen=True):
    """So many copies; of a job set, so many tasks side by side."""

    copies: Annotated[int, Meta(ge=0, le=10_000)] = 1


class Pause(Asked, frozen=True):
    """Nothing more is replaced, or begins, until somebody resumes it."""

    because: Annotated[str, Meta(max_length=180)] = ""


class Resume(Asked, frozen=True):
    """It goes on."""


class Restart(Asked, frozen=True):
    """Every copy is made anew, as for any other change."""


class Rollback(Asked, frozen=True):
    """It becomes what it was."""

    to: Annotated[int, Meta(ge=0)] = 0
    """The revision; the last that was otherwise where none is named."""


class Rerun(Asked, frozen=True):
    """What has ended runs again: some tasks of it, a training whole, or a periodic job once now."""

    tasks: Annotated[str, Meta(max_length=4096)] = FAILED
    reason: Cause = "Any"
    cpu: Annotated[str, Meta(max_length=32)] = ""
    memory: Annotated[str, Meta(max_length=32)] = ""


class Break(Asked, frozen=True):
    """A fault is put on it, on purpose."""

    fault: Annotated[str, Meta(max_length=64)] = ""
    silently: bool = False
    """Nobody is told which: they are to find it out."""


class Heal(Asked, frozen=True):
    """It becomes what it was before it was broken on purpose."""


Change = Scale | Pause | Resume | Restart | Rollback | Rerun | Break | Heal

"""Short view of a workload, as used in lists and by `pin get`."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from pincompute.api.status import READY, Progress
from pincompute.api.structs import LenientStruct
from pincompute.base.problem import Problem
from pincompute.base.reasons import (
    PROGRESSING,
    WORKLOAD_UNKNOWN,
)

_MAX_LISTED_NAMES = 20
"""Maximum number of names listed in the message for an unknown name."""


class WorkloadSummary(LenientStruct, frozen=True, omit_defaults=False):
    kind: str
    project: str
    name: str
    uid: str
    """Distinguishes workloads that had this name one after the other."""
    generation: int
    """Generation in the cluster. Shows whether a submission has arrived."""
    revision: int
    """Revision number for display."""
    goal: str
    """Condition type of the goal: Ready or Succeeded."""
    ready: int
    """Number of ready replicas of any revision, or of succeeded tasks. `progress.ready` counts the newest revision."""
    wanted: int
    """Number of ready replicas of the newest revision, or of succeeded tasks, at which the goal is reached."""
    image: str
    attempt: int = 1
    """Attempt number of kinds that can be rerun."""
    done: bool = False
    """The goal is reached."""
    failed: bool = False
    """The goal will not be reached without a change."""
    reason: str = PROGRESSING.code
    message: str = ""
    next: str = ""
    address: str = ""
    progress: Progress = Progress()
    simulated: bool = False
    """Runs on simulated nodes, without a program."""
    expires: str = ""
    """End of its life; empty if it never expires."""

    @property
    def former_serves(self) -> bool:
        """True if replicas of a former revision are ready, which serve until newer ones replace them."""
        return self.goal == READY and self.progress.ready < self.ready

    @property
    def ready_text(self) -> str:
        """`3/3`, or `3/3 (1 new)` while replicas of a former revision serve too."""
        new = f" ({self.progress.ready} new)" if self.former_serves else ""
        return f"{self.ready}/{self.wanted}{new}"

    @property
    def serving_note(self) -> str:
        """What serves while replicas of a former revision do; empty otherwise."""
        return f"ready: {self.ready_text}; former replicas still serve" if self.former_serves else ""

    @property
    def label(self) -> str:
        """`hello@7`, or `resize@1.2` for its second attempt."""
        attempt = f".{self.attempt}" if self.attempt > 1 else ""
        return f"{self.name}@{self.revision}{attempt}"


class WorkloadChange(LenientStruct, frozen=True):
    """Change of a project's workloads: the first one is the complete list, later ones are increments."""

    current: list[WorkloadSummary] = []
    """Workloads that are new or have changed."""
    deleted: list[str] = []


def unknown_workload_problem(project: str, name: str, known: Sequence[str]) -> Problem:
    """Problem with a suggestion of the most similar name."""
    matches = get_close_matches(name, known, 1)
    more = f" and {len(known) - _MAX_LISTED_NAMES} more" if len(known) > _MAX_LISTED_NAMES else ""
    return Problem(
        WORKLOAD_UNKNOWN,
        f"project {project} has no workload '{name}'",
        note=f"workloads: {', '.join(known[:_MAX_LISTED_NAMES]) or 'none'}{more}",
        next=f"did you mean {matches[0]}?" if matches else "pin get",
    )

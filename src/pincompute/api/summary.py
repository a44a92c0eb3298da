"""A workload in the few words that a person needs: what the desk tells and the hand shows."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from pincompute.api.status import Progress
from pincompute.api.wire import Wire
from pincompute.base.problem import Problem
from pincompute.base.reasons import (
    PROGRESSING,
    WORKLOAD_UNKNOWN,
)

_SHOWN = 20
"""Names that are listed where one is unknown."""


class Summary(Wire, frozen=True, omit_defaults=False):
    kind: str
    project: str
    name: str
    uid: str
    """Which of those that had this name, one after the other."""
    generation: int
    """How often it was changed: whether this is of what was submitted."""
    revision: int
    """The number that people know it by."""
    goal: str
    """Ready, or Succeeded."""
    ready: int
    wanted: int
    """So many copies that answer, or tasks that are done, are enough."""
    image: str
    attempt: int = 1
    """Of work that can be rerun."""
    done: bool = False
    """Its goal is reached."""
    failed: bool = False
    """As it is, its goal will never be reached."""
    reason: str = PROGRESSING.code
    message: str = ""
    next: str = ""
    address: str = ""
    progress: Progress = Progress()
    simulated: bool = False
    """No program runs: it is only pretended."""

    @property
    def label(self) -> str:
        """`hello@7`, or `resize@1.2`, its second attempt."""
        attempt = f".{self.attempt}" if self.attempt > 1 else ""
        return f"{self.name}@{self.revision}{attempt}"


class Sight(Wire, frozen=True):
    """What is seen of a project: at first all that there is, and then what is new."""

    now: list[Summary] = []
    """As they are by now, by name."""
    gone: list[str] = []


def unknown_workload(project: str, name: str, there: Sequence[str]) -> Problem:
    """With the name that was probably meant."""
    near = get_close_matches(name, there, 1)
    shown = ", ".join(there[:_SHOWN]) + (f" and {len(there) - _SHOWN} more" if len(there) > _SHOWN else "")
    return Problem(
        WORKLOAD_UNKNOWN,
        f"project {project} has no workload '{name}'",
        note=f"there are: {shown or 'none'}",
        next=f"did you mean {near[0]}?" if near else "pin get",
    )

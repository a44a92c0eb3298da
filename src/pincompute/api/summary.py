"""A workload in the few words that a person needs: what the desk tells and the hand shows."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import msgspec

from pincompute.api.status import OUTDATED, SUCCEEDED, UNREVIEWED, Condition, Progress, condition
from pincompute.api.wire import Wire
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem
from pincompute.base.reasons import (
    CRASH_LOOP,
    KILLED,
    OUT_OF_MEMORY,
    PROGRAM_FAILED,
    PROGRESSING,
    REASONS,
    ROLLOUT_BLOCKED,
    WORKLOAD_UNKNOWN,
    Who,
)

_TRIED_AGAIN = {each.code for each in (CRASH_LOOP, KILLED, OUT_OF_MEMORY, PROGRAM_FAILED)}
"""How one program of many may end, before it is known what becomes of the work."""
_WELL = frozenset(code for code, each in REASONS.items() if each.http == 200)
"""Why nothing need be done."""
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


def summarize(workload: Workload) -> Summary:
    """What is known; while the operator has not yet looked at the newest revision, that is only that it exists."""
    status = workload.status
    goal = condition(status.conditions, workload.GOAL)
    if status.observed_generation < workload.metadata.generation or goal is None:
        return _submitted(workload)
    ready, wanted = workload.counted
    first = _first(status.conditions, goal)
    return msgspec.structs.replace(
        _submitted(workload),
        revision=status.revision,
        attempt=workload.attempt,
        ready=ready,
        wanted=wanted,
        done=goal.status == "True",
        failed=_failed(workload, goal),
        reason=first.reason,
        message=first.message,
        next=status.next,
        progress=status.progress or Progress(),
        simulated=status.simulated,
    )


def _first(conditions: list[Condition], goal: Condition) -> Condition:
    """What is told first is what is wrong; that a runtime is old, or that nobody has reviewed what runs, is only that
    while nothing else is. And while it still comes to its goal, that is told, and not that all is in order aside."""
    aside = filter(None, (condition(conditions, each) for each in (OUTDATED, UNREVIEWED)))
    told = (each for each in aside if each.reason not in _WELL or goal.status == "True")
    return next(told, goal) if goal.reason in _WELL else goal


def _submitted(workload: Workload) -> Summary:
    metadata = workload.metadata
    new = msgspec.structs.replace(workload, status=type(workload.status)())
    ready, wanted = new.counted
    return Summary(
        kind=workload.kind,
        project=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        generation=metadata.generation,
        revision=metadata.generation,
        goal=workload.GOAL,
        ready=ready,
        wanted=wanted,
        image=workload.spec.image,
        address=workload.status.address,
    )


def _failed(workload: Workload, goal: Condition) -> bool:
    """Something is wrong that only its user can mend; or work that ends has ended without its goal."""
    if goal.status == "True":
        return False
    if workload.GOAL == SUCCEEDED:
        if goal.status == "False":
            return True
        if goal.reason in _TRIED_AGAIN or workload.goes_on:
            return False
    reason = REASONS.get(goal.reason)
    # A former copy that holds a rollout up is made anew by the operator, where nobody has said otherwise.
    return reason is not None and reason.who is Who.USER and reason is not ROLLOUT_BLOCKED


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

"""What is read only when a person asks: events make a coarse cause a fine one, and never another; nodes and pods bring
the numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import (
    CLAIM_NOT_BOUND,
    GANG_SPLIT,
    NO_NODE_MATCHES,
    NOT_MADE,
    NOT_PREPARED,
    PREPARES_LONG,
    QUOTA_USED_UP,
    ROLLOUT_LATE,
    UNSCHEDULABLE,
    Reason,
)
from pincompute.planning.people.events import Event
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.why import refusals, room, shares, starts
from pincompute.planning.why.guests import Guest
from pincompute.planning.why.room import Room
from pincompute.planning.why.words import ending

_TOLD_BY: dict[Reason, tuple[str, ...]] = {
    NOT_MADE: ("FailedCreate",),
    ROLLOUT_LATE: ("FailedCreate", "FailedScheduling", "FailedMount", "FailedCreatePodSandBox"),
    NOT_PREPARED: ("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "FailedMapVolume", "NetworkNotReady"),
    PREPARES_LONG: ("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "FailedMapVolume"),
    CLAIM_NOT_BOUND: ("ProvisioningFailed", "FailedBinding"),
}
"""Causes of which the loop knows too little, and the events that know more."""


NUMBERED = frozenset({UNSCHEDULABLE, NO_NODE_MATCHES, GANG_SPLIT})
"""Causes that lie with the nodes."""


class Numbers(NamedTuple):
    """Who has how much, where that is what stands against it."""

    waits: Guest | None = None
    """A copy that no node takes."""
    room: Room = Room()
    project: Sequence[Guest] = ()
    """All pods of the project."""


NO_NUMBERS = Numbers()


def counted(snapshot: Snapshot, problem: Problem, numbers: Numbers) -> Problem:
    """The same, with the numbers."""
    owner: Workload = snapshot.owner
    said = ""
    if problem.reason in NUMBERED and numbers.waits:
        said = room.told(numbers.waits, numbers.room, owner.COPY[0])
    elif problem.reason is QUOTA_USED_UP:
        said = shares.told(problem.note, owner.spec.tier, numbers.project)
    return problem._replace(note="\n".join(each for each in (problem.note, said) if each))


def sharpened(snapshot: Snapshot, problem: Problem, events: Iterable[Event]) -> Problem:
    """The same cause as the newest event that speaks of it tells it."""
    telling = _TOLD_BY.get(problem.reason, ())
    said = [each for each in events if each.type == "Warning" and each.reason in telling]
    if not said:
        return problem
    newest = max(said, key=lambda each: (each.last, each.metadata.name))
    finer = _finer(snapshot, newest)
    where = Where(object=f"{newest.regarding.kind.lower()} {newest.regarding.name}")
    return finer._replace(where=where) if finer else problem._replace(note=ending(newest.note))


def _finer(snapshot: Snapshot, event: Event) -> Problem | None:
    if event.reason == "FailedCreate":
        return refusals.refused(snapshot, event.note)
    if event.reason in {"FailedMount", "FailedMapVolume"}:
        return starts.missing(snapshot.owner, event.note)
    return None

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
from pincompute.objects.times import instant
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

OFTEN = 3
"""Times that something is refused which may be allowed by itself, before that is told."""
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


def unmade(snapshot: Snapshot, events: Sequence[Event]) -> Problem | None:
    """Why a copy that is missing beside others is not made: what makes it says so by events alone."""
    made = [each.last for each in events if each.reason == "SuccessfulCreate"]
    made += [pod.metadata.creation_timestamp for pod in snapshot.pods]
    since = max(map(instant, filter(None, made)), default=0)
    said = [
        each for each in events
        if each.reason == "FailedCreate" and instant(each.last) > since and not refusals.passing(each.note)
    ]  # fmt: skip
    if not said or refusals.short(snapshot) <= 0:
        return None
    last = _newest(said)
    problem = refusals.refused(snapshot, last.note)
    if problem.reason in refusals.MAY_PASS and last.times < OFTEN:
        return None
    return problem._replace(where=_where(last), next=problem.next or f"pin show {snapshot.owner.metadata.name}")


def sharpened(snapshot: Snapshot, problem: Problem, events: Iterable[Event]) -> Problem:
    """The same cause as the newest event that speaks of it tells it."""
    telling = _TOLD_BY.get(problem.reason, ())
    said = [each for each in events if each.type == "Warning" and each.reason in telling]
    if not said:
        return problem
    newest = _newest(said)
    finer = _finer(snapshot, newest)
    return finer._replace(where=_where(newest)) if finer else problem._replace(note=ending(newest.note))


def _finer(snapshot: Snapshot, event: Event) -> Problem | None:
    if event.reason == "FailedCreate":
        return refusals.refused(snapshot, event.note)
    if event.reason in {"FailedMount", "FailedMapVolume"}:
        return starts.missing(snapshot.owner, event.note)
    return None


def _newest(events: Iterable[Event]) -> Event:
    return max(events, key=lambda each: (each.last, each.metadata.name))


def _where(event: Event) -> Where:
    return Where(object=f"{event.regarding.kind.lower()} {event.regarding.name}")

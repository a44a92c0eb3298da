"""What only events tell, read when a person asks: they make a coarse cause a fine one, and never another."""

from __future__ import annotations

from collections.abc import Iterable

from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import (
    CLAIM_NOT_BOUND,
    NOT_MADE,
    NOT_PREPARED,
    PREPARES_LONG,
    ROLLOUT_LATE,
    Reason,
)
from pincompute.planning.events import Event
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.why import refusals, starts
from pincompute.planning.why.words import ending

_TOLD_BY: dict[Reason, tuple[str, ...]] = {
    NOT_MADE: ("FailedCreate",),
    ROLLOUT_LATE: ("FailedCreate", "FailedScheduling", "FailedMount", "FailedCreatePodSandBox"),
    NOT_PREPARED: ("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "FailedMapVolume", "NetworkNotReady"),
    PREPARES_LONG: ("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "FailedMapVolume"),
    CLAIM_NOT_BOUND: ("ProvisioningFailed", "FailedBinding"),
}
"""Causes of which the loop knows too little, and the events that know more."""


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

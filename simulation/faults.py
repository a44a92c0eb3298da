"""The faults that can happen at one write of the operator, and the choice of those that are tried at each write.

All three crashes are tried at every write. Of the other faults, those of one group look much the same to the operator,
so each write gets one fault per group, in turn: over the writes of a scenario every fault is tried many times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pincompute.api.names import GROUP
from pincompute.kube.resource import NAMESPACES, PERSISTENT_VOLUME_CLAIMS, PODS, REPLICA_SETS

CRASH_BEFORE = "crash-before"
"""The operator is killed before the server receives the write."""
CRASH_RESPONSE_LOST = "crash-response-lost"
"""Killed after the server has executed the write, before the response arrives."""
CRASH_AFTER = "crash-after"
"""Killed after the response, when the operator next waits."""
CRASHES = (CRASH_BEFORE, CRASH_RESPONSE_LOST, CRASH_AFTER)

REQUEST_LOST = "request-lost"
SERVER_ERROR = "server-error"
STORAGE_FULL = "storage-full"
SHUTTING_DOWN = "shutting-down"
WRITE_CONFLICT = "write-conflict"
STALLED_BEFORE_SEND = "stalled-before-send"
"""The machine stalls until the lease has expired, and the write has not been sent yet: it must not be."""
THROTTLED = "throttled"
STALLED_AFTER_SEND = "stalled-after-send"
"""The same, but the write is on its way already."""
DELAYED_WRITE = "delayed-write"
"""The operator is killed, and its write reaches the server only when its successor is at work."""
RESPONSE_LOST = "response-lost"
RESPONSE_TIMEOUT = "response-timeout"
"""The write was executed, and the server answers that it took too long."""
WATCHES_CUT = "watches-cut"
CLOCK_AHEAD = "clock-ahead"
CLOCK_BACK = "clock-back"
FAULT_GROUPS = (
    (REQUEST_LOST, SERVER_ERROR, STORAGE_FULL, SHUTTING_DOWN),
    (WRITE_CONFLICT, STALLED_BEFORE_SEND, THROTTLED, STALLED_AFTER_SEND, DELAYED_WRITE),
    (RESPONSE_LOST, RESPONSE_TIMEOUT),
    (WATCHES_CUT, CLOCK_AHEAD, CLOCK_BACK),
)
FAULTS = tuple(fault for group in FAULT_GROUPS for fault in group)
KILLING_FAULTS = (*CRASHES, DELAYED_WRITE)
"""Faults after which a second operator process has to start."""
DONE_UNANSWERED = (RESPONSE_LOST, RESPONSE_TIMEOUT)
"""Faults after which the write is in effect although the operator takes it for failed."""

EVENTS_LATE = "events-late"
"""Watch events of the written kind are delayed."""
OTHER_EVENTS_LATE = "other-events-late"
"""Watch events of all other kinds are delayed."""
EVENTS_TWICE = "events-twice"
HISTORY_COMPACTED = "history-compacted"
"""All events are delayed, then the history is compacted: the watches must list everything again."""
CACHE_FAULTS = (EVENTS_LATE, OTHER_EVENTS_LATE, EVENTS_TWICE, HISTORY_COMPACTED)
"""Faults that make the operator's cache differ from the cluster for a while."""

NAME_TAKEN = "name-taken"
"""Just before the write, an object of another owner takes the name of the target."""
FOREIGN_EDIT = "foreign-edit"
"""Just before the write, another writer edits the target."""
NEXT_STEP_EARLY = "next-step-early"
"""Users do not wait for this step: the next step of the scenario starts at the write."""
FOREIGN_FAULTS = (NAME_TAKEN, FOREIGN_EDIT, NEXT_STEP_EARLY)

ALL_FAULTS = (*CRASHES, *FAULTS, *CACHE_FAULTS, *FOREIGN_FAULTS)

SUITES = {"R1": CRASHES, "R2": CACHE_FAULTS, "R3": FAULTS, "others": FOREIGN_FAULTS}
"""Faults by the name under which results are reported."""


def suite_of(fault: str) -> str:
    return next((suite for suite, faults in SUITES.items() if fault in faults), "R1")


class FaultPoint(NamedTuple):
    """One fault at one write, the writes being numbered in the undisturbed run."""

    write: int
    fault: str

    def __str__(self) -> str:
        return f"{self.write}:{self.fault}"


class WorldMark(NamedTuple):
    """Identifies the state of the cluster at one moment of a write."""

    changes: int
    """How many changes there were before it."""
    at: float


SAME_MOMENT_S = 0.5
"""Moments this close, with no change in between, make no difference to an operator that restarts."""


def equivalent_crashes(marks: Iterable[tuple[WorldMark, ...]]) -> dict[FaultPoint, FaultPoint]:
    """Maps each crash to the first one that is equivalent to it.

    A killed process leaves nothing behind but the state of the cluster. So a crash after one write is the same as a
    crash before the next, unless the cluster has changed or much time has passed between them.
    """
    representatives: dict[FaultPoint, FaultPoint] = {}
    last, first = WorldMark(-1, 0.0), FaultPoint(0, CRASH_BEFORE)
    for write, moments in enumerate(marks):
        for fault, mark in zip(CRASHES, moments, strict=True):
            if mark.changes != last.changes or abs(mark.at - last.at) > SAME_MOMENT_S:
                last, first = mark, FaultPoint(write, fault)
            representatives[FaultPoint(write, fault)] = first
    return representatives


def other_faults_at(write: int, request: str, *, can_hurry: bool) -> Iterator[FaultPoint]:
    """The faults to try at a write beside the crashes; `request` is its method and path."""
    for group in FAULT_GROUPS:
        yield FaultPoint(write, group[write % len(group)])
    method, path = request.split()
    # A deleted object leaves no resourceVersion for which the operator could wait, so losing its event is no fair
    # fault.
    cache_faults = (EVENTS_LATE, EVENTS_TWICE) if method == "DELETE" else CACHE_FAULTS
    yield FaultPoint(write, cache_faults[write % len(cache_faults)])
    if can_hurry and not write % 2:
        yield FaultPoint(write, NEXT_STEP_EARLY)
    if is_plain_native(path):
        yield FaultPoint(write, FOREIGN_EDIT if method == "PATCH" and write % 2 else NAME_TAKEN)


def is_plain_native(path: str) -> bool:
    """Whether the path is of a native that another writer might as well have created or edited."""
    parts = path.strip("/").split("/")
    excluded = {each.plural for each in (PERSISTENT_VOLUME_CLAIMS, NAMESPACES, PODS, REPLICA_SETS)}
    start = 3 if parts[0] == "apis" else 2
    namespaced = len(parts) in {start + 3, start + 4} and parts[start] == "namespaces"
    return namespaced and parts[1] != GROUP and parts[start + 2] not in excluded

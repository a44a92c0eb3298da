"""Commands that fix a problem. For a workload that was healthy before its last change, that is a rollback."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from pincompute.api.status import Condition
from pincompute.api.structs import without_defaults
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem
from pincompute.base.reasons import (
    CLAIM_NOT_BOUND,
    CLUSTER_REFUSED,
    GANG_PARTIALLY_SCHEDULED,
    NO_NODE_MATCHES,
    NODE_REFUSED,
    POD_NOT_CREATED,
    POD_SETUP_SLOW,
    QUOTA_USED_UP,
    READINESS_GATE_CLOSED,
    REGISTRY_UNREACHABLE,
    RUNTIME_MISSING,
    UNSCHEDULABLE,
    Actor,
    Reason,
)
from pincompute.planning.diagnosis.scheduling import ANTI_AFFINITY
from pincompute.planning.edit_commands import EDIT_COMMAND
from pincompute.planning.edits import can_roll_back
from pincompute.planning.revision_number import expected_revision
from pincompute.planning.views.history import RevisionRecord, describe_changes

COMMAND_PREFIX = "pin "
"""A `next:` with this prefix can be run as it stands."""
ROLLBACK_COMMAND = f"{COMMAND_PREFIX}rollback "
_READ_ONLY_COMMANDS = ("pin logs ", "pin show ", "pin status", "pin image ")
"""Commands that show more, or prepare a fix, but fix nothing themselves."""
_CLOCK_TOLERANCE = timedelta(seconds=2)
"""Times in a cluster are whole seconds, and come from two clocks."""
_MAX_TIME_TO_FAIL = timedelta(minutes=10)
"""A workload that was healthy for longer than this after a change is not failing because of the change."""
_NO_REVISION = 0
_CAUSED_BY_SPEC = frozenset(
    {
        CLAIM_NOT_BOUND,
        CLUSTER_REFUSED,
        GANG_PARTIALLY_SCHEDULED,
        READINESS_GATE_CLOSED,
        NODE_REFUSED,
        NO_NODE_MATCHES,
        POD_NOT_CREATED,
        POD_SETUP_SLOW,
        REGISTRY_UNREACHABLE,
        RUNTIME_MISSING,
        UNSCHEDULABLE,
    }
)
"""Problems for which others could act, but which a rollback of the spec fixes as well."""


def add_remedy(
    owner: Workload,
    problem: Problem,
    goal: Condition | None,
    edited: datetime | None,
    past: Sequence[RevisionRecord],
) -> Problem:
    """The problem with the rollback that fixes it as its next command, if the last change has caused it.

    `goal` is the condition that the workload misses, since it was lost. The remedy that the problem had before is kept
    in the note, in case the change is to be kept.
    """
    if not _is_caused_by_the_spec(problem.reason) or _is_fix(owner, problem.next):
        return problem
    healthy = last_healthy_revision(owner, goal, edited, past)
    if healthy is None or not can_roll_back(owner):
        return _scaled_to_what_fits(owner, problem)
    name, first_failing = owner.metadata.name, healthy.number + 1
    since = f"{name}@{first_failing}" if first_failing < expected_revision(owner).number else "its last change"
    changed = describe_changes(type(owner), healthy.raw_spec, without_defaults(owner.spec))
    notes = (
        problem.note,
        f"healthy until {since}: {'; '.join(changed)}",
        f"to keep this change: {problem.next}" if problem.next else "",
    )
    note = "\n".join(each for each in notes if each)
    return problem._replace(note=note, next=f"{ROLLBACK_COMMAND}{name} --to {healthy.number}")


def may_be_rolled_back(owner: Workload, reason: Reason, edited: datetime | None) -> bool:
    """True if the recorded revisions could hold one that was healthy."""
    has_former = expected_revision(owner).number > 1
    return has_former and edited is not None and _is_caused_by_the_spec(reason)


def _is_caused_by_the_spec(reason: Reason) -> bool:
    return reason.actor is Actor.USER or reason in _CAUSED_BY_SPEC


def _scaled_to_what_fits(owner: Workload, problem: Problem) -> Problem:
    """The problem with the number of replicas that run already as its next command, if there is no room for more."""
    fitting = owner.status.ready_replicas
    lacks_room = problem.reason in {QUOTA_USED_UP, UNSCHEDULABLE} or ANTI_AFFINITY in problem.next
    if not lacks_room or not owner.SCALABLE or not 0 < fitting < owner.progress_counts[1]:
        return problem
    note = "\n".join(each for each in (problem.note, f"to keep this change: {problem.next}") if each)
    return problem._replace(note=note, next=f"{COMMAND_PREFIX}scale {owner.metadata.name} {fitting}")


def last_healthy_revision(
    owner: Workload, goal: Condition | None, edited: datetime | None, past: Sequence[RevisionRecord]
) -> RevisionRecord | None:
    """The newest revision before the one that broke the workload; None if it was never healthy."""
    if goal is None or goal.status == "True" or edited is None:
        return None
    broke_at = datetime.fromisoformat(goal.last_transition_time) + _CLOCK_TOLERANCE
    present = expected_revision(owner).number
    starts = [
        (datetime.fromisoformat(each.created_at), each.number)
        for each in past
        if each.created_at and each.number <= present
    ]
    began = next((time for time, number in starts if number == present), edited)
    # A busy operator records the revision of an edit some time after it.
    starts.append((min(began, edited), present))
    if edited > began + _CLOCK_TOLERANCE:
        # An edit such as `pin scale`, which no rollback takes back.
        starts.append((edited, _NO_REVISION))
    started_at, culprit = max((each for each in starts if each[0] <= broke_at), default=(broke_at, 0))
    candidates = [
        each
        for each in past
        if each.number < culprit and each.differs(owner) and broke_at - started_at < _MAX_TIME_TO_FAIL
    ]
    return max(candidates, key=lambda each: each.number, default=None)


def _is_fix(owner: Workload, next_: str) -> bool:
    """True for a command that fixes the problem; an identical rerun fixes only what failed by chance.

    An edit is proposed only where no earlier revision was healthy: that one has proved that it runs.
    """
    identical_rerun = f"pin rerun {owner.metadata.name}"
    no_fix = (*_READ_ONLY_COMMANDS, EDIT_COMMAND)
    return next_.startswith(COMMAND_PREFIX) and not next_.startswith(no_fix) and next_ != identical_rerun

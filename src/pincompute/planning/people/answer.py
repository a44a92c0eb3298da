"""One honest answer to why a workload is not as wanted, or that nothing is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from pincompute.api.account import Answer
from pincompute.api.status import UNREVIEWED, Condition, Status, condition
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import (
    CANNOT_CHANGE,
    CLUSTER_REFUSED,
    GLASS_BROKEN,
    INTERNAL,
    NOT_OURS,
    OPERATOR_SILENT,
    PAUSED,
    PROGRESSING,
    REASONS,
    STORE_FULL,
    SUSPENDED,
    Who,
)
from pincompute.planning.people import cure
from pincompute.planning.people.account import family
from pincompute.planning.people.events import Event
from pincompute.planning.people.history import Past
from pincompute.planning.people.news import PUT_BACK
from pincompute.planning.people.summary import summarize
from pincompute.planning.plan import Plan
from pincompute.planning.planners import PLANNERS
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.why.evidence import NO_NUMBERS, Numbers, counted, sharpened, unmade
from pincompute.planning.why.words import lasting

PATIENCE = 10.0
"""Seconds in which the operator should have looked at what was submitted."""
_BY_ACTING = frozenset({CANNOT_CHANGE, CLUSTER_REFUSED, NOT_OURS, STORE_FULL})
"""What a plan knows nothing of, however well all is that it knows."""
LATELY = 600.0
"""Seconds for which an edit by hand that was put back is told."""
_FINE = 200
"""What no reason of something wrong is answered with."""


def answer(
    snapshot: Snapshot,
    events: Iterable[Event],
    edited: datetime | None,
    past: Sequence[Past] = (),
    numbers: Numbers = NO_NUMBERS,
) -> Answer:
    """Thought anew from what is there now, so that it is true while the operator is away."""
    plan = PLANNERS[snapshot.owner.kind](snapshot)
    problem = _unseen(snapshot, edited) or plan.why or _told(snapshot.owner, plan)
    kin = family(snapshot)
    theirs = [each for each in events if kin.has(each)]
    notes = [each for each in (_put_back(snapshot, theirs), _unreviewed(plan.status)) if each]
    if _on_its_way(snapshot.owner, plan, problem):
        problem = unmade(snapshot, theirs) or problem
    if problem is None or problem.reason.http == _FINE:
        return _well(snapshot.owner, plan, problem, "\n".join(notes))
    found = cure.found(snapshot.owner, counted(snapshot, sharpened(snapshot, problem, theirs), numbers), edited, past)
    return _wrong(snapshot.owner, found._replace(note="\n".join(each for each in (found.note, *notes) if each)))


def told(owner: Workload) -> Answer:
    """As the operator last said it, for those who may not read all that it is planned by."""
    problem = _said(owner, condition(owner.status.conditions, owner.GOAL))
    if problem is None or problem.reason.http == _FINE:
        return _well(owner, None, problem)
    return _wrong(owner, problem)


def _unseen(snapshot: Snapshot, edited: datetime | None) -> Problem | None:
    owner: Workload = snapshot.owner
    waited = (snapshot.now - edited).total_seconds() if edited else 0.0
    if owner.status.observed_generation >= owner.metadata.generation or waited < PATIENCE:
        return None
    what = f"the operator has not looked at {owner.metadata.name}@{owner.metadata.generation} for {lasting(PATIENCE)}"
    return Problem(OPERATOR_SILENT, what, Where(object=owner.metadata.place), next="pin status")


def _told(owner: Workload, plan: Plan) -> Problem | None:
    """What only acting brings to light, such as a native that is not ours, stands in the status alone."""
    goal = _goal(owner, plan.status)
    said = _said(owner, condition(owner.status.conditions, owner.GOAL))
    if goal and goal.status == "True":
        now = owner.status.observed_generation == owner.metadata.generation
        return said if said and now and said.reason in _BY_ACTING else None
    return said


def _said(owner: Workload, goal: Condition | None) -> Problem | None:
    if goal is None or goal.status == "True":
        return None
    reason = REASONS.get(goal.reason, INTERNAL)
    return Problem(reason, goal.message, Where(object=owner.metadata.place), next=owner.status.next)


def _put_back(snapshot: Snapshot, events: Sequence[Event]) -> str:
    """What was edited by hand is as before, and whoever did it wonders."""
    told = [each for each in events if each.reason == PUT_BACK and each.last and _lately(snapshot, each.last)]
    newest = max(told, key=lambda each: (each.last, each.metadata.name), default=None)
    return newest.note if newest else ""


def _unreviewed(said: object) -> str:
    """What is no fault, and is to be known by whoever asks; that it has lasted too long is one."""
    found = condition(said.conditions, UNREVIEWED) if isinstance(said, Status) else None
    return found.message if found and found.reason == GLASS_BROKEN.code else ""


def _lately(snapshot: Snapshot, moment: str) -> bool:
    return (snapshot.now - datetime.fromisoformat(moment)).total_seconds() < LATELY


def _well(owner: Workload, plan: Plan | None, problem: Problem | None, note: str = "") -> Answer:
    """Kept still on purpose, on its way, or done."""
    goal = _goal(owner, plan.status if plan else owner.status)
    on_purpose = problem is not None and problem.reason is not PROGRESSING
    return Answer(
        label=summarize(owner).label,
        wrong=False,
        reason=problem.reason.code if problem else goal.reason if goal else PROGRESSING.code,
        what=problem.what if problem and on_purpose else goal.message if goal else "the operator looks at it now",
        note=note,
        next=f"pin resume {owner.metadata.name}" if _kept_still(problem, goal) else "",
    )


def _on_its_way(owner: Workload, plan: Plan, problem: Problem | None) -> bool:
    """Nothing that is known of keeps it from its goal, and it is not there yet."""
    goal = _goal(owner, plan.status)
    return (problem is None or problem.reason is PROGRESSING) and (goal is None or goal.status != "True")


def _kept_still(problem: Problem | None, goal: Condition | None) -> bool:
    reason = problem.reason.code if problem else goal.reason if goal else ""
    return reason in {PAUSED.code, SUSPENDED.code}


def _wrong(owner: Workload, problem: Problem) -> Answer:
    return Answer(
        label=summarize(owner).label,
        wrong=True,
        reason=problem.reason.code,
        what=problem.what,
        where=str(problem.where),
        note=problem.note,
        next=problem.next or problem.reason.mend,
        # Whoever changed it can take that back, whoever else could mend it.
        waits=Who.USER if problem.next.startswith(cure.BACK) else problem.reason.who,
    )


def _goal(owner: Workload, status: object) -> Condition | None:
    return condition(status.conditions, owner.GOAL) if isinstance(status, Status) else None

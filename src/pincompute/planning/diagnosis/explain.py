"""The answer of `pin why`: the reason for which a workload is not as wanted, or that nothing is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from pincompute.api.status import Condition, WorkloadStatus, find_condition
from pincompute.api.workload import Workload
from pincompute.api.workload_detail import Diagnosis, OtherCause
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import (
    EXPIRED,
    INTERNAL,
    OPERATOR_NOT_RESPONDING,
    PAUSED,
    PROGRESSING,
    SUSPENDED,
    Actor,
    find_reason,
)
from pincompute.objects.times import format_time
from pincompute.planning.diagnosis import other_cause, remediation
from pincompute.planning.diagnosis.evidence import (
    NO_EVIDENCE,
    Evidence,
    add_evidence,
    failed_create_problem,
    refine_with_events,
    who_acts,
)
from pincompute.planning.diagnosis.excerpts import format_duration
from pincompute.planning.diagnosis.failed_create import REFUSED_WRITE_REASONS
from pincompute.planning.diagnosis.graph import VERTICES
from pincompute.planning.diagnosis.notes import collect_notes
from pincompute.planning.diagnosis.path import build_path
from pincompute.planning.diagnosis.probe_events import restart_by_probe, with_probe_error
from pincompute.planning.kinds.planners import PLANNERS
from pincompute.planning.plan import Plan
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.status import active_pods_of
from pincompute.planning.views.events import Event
from pincompute.planning.views.history import RevisionRecord
from pincompute.planning.views.summary import summarize
from pincompute.planning.views.workload_detail import event_scope_of

OPERATOR_RESPONSE_GRACE_S = 30.0
"""Time in which the operator should have observed a change, also on a machine that is short of CPU."""
_FOUND_BY_THE_OPERATOR = REFUSED_WRITE_REASONS.union(VERTICES["operator"].reasons, VERTICES["address"].reasons)
"""Problems that a plan of one workload cannot know: those that the operator's writes discover, and those that depend on
the workloads of all projects or on the cluster's ingress classes."""


def diagnose(
    snapshot: Snapshot,
    events: Iterable[Event],
    edited: datetime | None,
    past: Sequence[RevisionRecord] = (),
    evidence: Evidence = NO_EVIDENCE,
) -> Diagnosis:
    """The diagnosis of a workload, planned again from its present state.

    It is therefore right even while the operator is down and the status is old. `edited` is the time of the last change
    of the spec.
    """
    owner: Workload = snapshot.owner
    plan = PLANNERS[owner.kind](snapshot)
    problem = _operator_problem(snapshot, edited) or _write_problem(owner) or plan.why or _status_problem(owner, plan)
    scope = event_scope_of(snapshot)
    own_events = [each for each in events if scope.includes(each)]
    notes = collect_notes(snapshot, plan.status, own_events)
    if _is_progressing(owner, plan, problem):
        problem = failed_create_problem(snapshot, own_events) or problem
    problem = restart_by_probe(snapshot, problem, own_events) or problem
    serving_note = summarize(msgspec.structs.replace(owner, status=plan.status)).serving_note
    if problem and problem.reason is not PROGRESSING and serving_note:
        # The message of a rollout that makes progress has the same numbers.
        notes.append(serving_note)
    if problem is None or not problem.reason.is_problem:
        return _healthy_diagnosis(owner, plan, problem, "\n".join(notes))
    problem = with_probe_error(snapshot, refine_with_events(snapshot, problem, own_events), own_events)
    problem = add_evidence(snapshot, problem, evidence)
    planned = snapshot._replace(owner=msgspec.structs.replace(owner, status=plan.status))
    path = build_path(planned, problem)
    also = other_cause(snapshot, active_pods_of(snapshot), problem)
    problem = remediation.add_remedy(owner, problem, _missed_goal(owner, plan, snapshot.now), edited, past)
    problem = problem._replace(note="\n".join(each for each in (problem.note, *notes) if each))
    found = _problem_diagnosis(owner, problem, who_acts(owner, problem, evidence))
    return msgspec.structs.replace(found, path=path, also=_as_other_cause(also) if also else None)


def diagnose_from_status(owner: Workload) -> Diagnosis:
    """The diagnosis in the status, for callers without permission to read all objects that planning needs."""
    problem = _condition_problem(owner, find_condition(owner.status.conditions, owner.GOAL))
    if problem is None or not problem.reason.is_problem:
        return _healthy_diagnosis(owner, None, problem)
    return _problem_diagnosis(owner, problem._replace(note=summarize(owner).serving_note), problem.reason.actor)


def add_call_problem(owner: Workload, found: Diagnosis, problem: Problem) -> Diagnosis:
    """The diagnosis with a callee that does not answer: the cause if there is no other, which would be more urgent."""
    if found.is_problem:
        return msgspec.structs.replace(found, also=found.also or _as_other_cause(problem))
    note = "\n".join(each for each in (problem.note, found.note) if each)
    return _problem_diagnosis(owner, problem._replace(note=note), problem.reason.actor)


def _operator_problem(snapshot: Snapshot, edited: datetime | None) -> Problem | None:
    owner: Workload = snapshot.owner
    waited_s = (snapshot.now - edited).total_seconds() if edited else 0.0
    if owner.status.observed_generation >= owner.metadata.generation or waited_s < OPERATOR_RESPONSE_GRACE_S:
        return None
    name, duration = owner.metadata.name, format_duration(OPERATOR_RESPONSE_GRACE_S)
    what = f"the operator has not observed the last change of {name} for {duration}"
    return Problem(OPERATOR_NOT_RESPONDING, what, Where(object=owner.metadata.key), next="pin status")


def _write_problem(owner: Workload) -> Problem | None:
    """The problem of a write that the operator could not do: what fails in the pods comes after it, as in the status.

    The result of work that has ended is in the same condition, and has another reason.
    """
    if owner.status.observed_generation != owner.metadata.generation:
        return None
    problem = _condition_problem(owner, find_condition(owner.status.conditions, owner.GOAL))
    return problem if problem and problem.reason in VERTICES["operator"].reasons else None


def _status_problem(owner: Workload, plan: Plan) -> Problem | None:
    """The problem in the status, for those that a plan cannot know.

    A status of an older generation does not count against a plan that reaches its goal.
    """
    goal = _goal_condition(owner, plan.status)
    problem = _condition_problem(owner, find_condition(owner.status.conditions, owner.GOAL))
    if goal and goal.status == "True":
        is_current = owner.status.observed_generation == owner.metadata.generation
        return problem if problem and is_current and problem.reason in _FOUND_BY_THE_OPERATOR else None
    return problem


def _condition_problem(owner: Workload, goal: Condition | None) -> Problem | None:
    if goal is None or goal.status == "True":
        return None
    reason = find_reason(goal.reason) or INTERNAL
    return Problem(reason, goal.message, Where(object=owner.metadata.key), next=owner.status.next)


def _healthy_diagnosis(owner: Workload, plan: Plan | None, problem: Problem | None, note: str = "") -> Diagnosis:
    """The diagnosis of a workload that is paused on purpose, progressing, or done."""
    goal = _goal_condition(owner, plan.status if plan else owner.status)
    is_intended = problem is not None and problem.reason is not PROGRESSING
    return Diagnosis(
        label=summarize(owner).label,
        is_problem=False,
        reason=problem.reason.code if problem else goal.reason if goal else PROGRESSING.code,
        what=problem.what if problem and is_intended else goal.message if goal else "the operator is reconciling it",
        note=note,
        next=_next_of_intended_state(owner, problem, goal),
    )


def _next_of_intended_state(owner: Workload, problem: Problem | None, goal: Condition | None) -> str:
    if problem and problem.reason is EXPIRED:
        return problem.next
    return f"pin resume {owner.metadata.name}" if _is_paused(problem, goal) else ""


def _is_progressing(owner: Workload, plan: Plan, problem: Problem | None) -> bool:
    """True if no cause is known, and the goal is not reached yet."""
    goal = _goal_condition(owner, plan.status)
    return (problem is None or problem.reason is PROGRESSING) and (goal is None or goal.status != "True")


def _is_paused(problem: Problem | None, goal: Condition | None) -> bool:
    reason = problem.reason.code if problem else goal.reason if goal else ""
    return reason in {PAUSED.code, SUSPENDED.code}


def _problem_diagnosis(owner: Workload, problem: Problem, actor: Actor) -> Diagnosis:
    return Diagnosis(
        label=summarize(owner).label,
        is_problem=True,
        reason=problem.reason.code,
        what=problem.what,
        where=str(problem.where),
        note=problem.note,
        next=problem.next or problem.reason.remedy,
        # Users can always roll back their own change, also where the cause itself is for the infrastructure team.
        waits_for=Actor.USER if problem.next.startswith(remediation.ROLLBACK_COMMAND) else actor,
    )


def _as_other_cause(problem: Problem) -> OtherCause:
    return OtherCause(problem.reason.code, problem.what, str(problem.where), problem.note, problem.next)


def _goal_condition(owner: Workload, status: object) -> Condition | None:
    return find_condition(status.conditions, owner.GOAL) if isinstance(status, WorkloadStatus) else None


def _missed_goal(owner: Workload, plan: Plan, now: datetime) -> Condition | None:
    """The goal condition as the operator wrote it, or as planned now: a goal lost just now is not in the status yet.

    A problem may be reported while the goal is met, as of a program that is restarted and is ready at this moment. The
    goal counts as lost now.
    """
    conditions = [each for status in (owner.status, plan.status) if (each := _goal_condition(owner, status))]
    missed = next((each for each in conditions if each.status != "True"), None)
    if missed or not conditions:
        return missed
    return msgspec.structs.replace(conditions[-1], status="False", last_transition_time=format_time(now))

"""Diagnosis of a training job: what it waits for as a whole, and then the problems of its replicas."""

from __future__ import annotations

from datetime import datetime

import msgspec

from pincompute.api.status import SUCCEEDED, Condition
from pincompute.api.training_job import PinterestTrainingJob
from pincompute.base import reasons
from pincompute.base.problem import Problem, Where
from pincompute.planning import status
from pincompute.planning.diagnosis import Finding, first_cause
from pincompute.planning.diagnosis.excerpts import join_first_few
from pincompute.planning.observed_pods import Pod
from pincompute.planning.plan import soonest
from pincompute.planning.snapshot import Native, Snapshot
from pincompute.planning.training.gang import Gang, replica_text
from pincompute.planning.training.outcome import (
    TrainingOutcome,
    awaited_text,
    cause_awaited_s,
    deadline_problem,
    deadline_time,
    first_failure,
    progress_text,
)

GANG_CREATION_GRACE_S = 30.0
"""Time that Kubeflow may take to create all pods."""
KUBEFLOW_KINDS = {"pytorch": "PyTorchJob", "tensorflow": "TFJob"}
"""Kubeflow's kind by framework."""
_CAPACITY_REASONS = (reasons.UNSCHEDULABLE, reasons.NO_NODE_MATCHES)


def training_condition(snapshot: Snapshot, gang: Gang, outcome: TrainingOutcome, why: Problem | None) -> Condition:
    """Condition Succeeded: Unknown until the job has ended."""
    owner: PinterestTrainingJob = snapshot.owner
    if outcome.problem:
        return status.build_condition(
            snapshot, SUCCEEDED, outcome.problem.reason, outcome.problem.message(), status=False
        )
    message = progress_text(owner, gang)
    if outcome.ended:
        return status.build_condition(snapshot, SUCCEEDED, reasons.SUCCEEDED, message, status=True)
    if why:
        return status.build_condition(snapshot, SUCCEEDED, why.reason, f"{message}; {why.message()}", status=None)
    waiting = awaited_text(owner, gang)
    message = f"{message}; {waiting}" if waiting else message
    return status.build_condition(snapshot, SUCCEEDED, reasons.PROGRESSING, message, status=None)


def training_finding(
    snapshot: Snapshot, job: Native | None, gang: Gang, outcome: TrainingOutcome, *, unchanged: bool
) -> Finding:
    """First problem: a suspension, then one of the job as a whole, then one of a replica.

    `unchanged` is true if the existing job was created by another version and cannot be changed.
    """
    owner: PinterestTrainingJob = snapshot.owner
    if outcome.ended:
        return Finding(outcome.problem)
    if owner.spec.suspended and not (job and job.find_condition("Succeeded")):
        return Finding(_cannot_suspend(owner) if unchanged else _suspended_problem(owner))
    if job is None:
        return Finding()
    not_responding = _not_responding_problem(snapshot, job, gang)
    finding = Finding(not_responding) if not_responding else _replica_finding(snapshot, gang)
    if finding.problem and finding.problem.reason is reasons.PROGRAM_FAILED:
        return _failed_program_finding(snapshot, job, finding)
    overdue = _overdue_finding(owner, job, snapshot.now)
    if finding.problem or overdue.problem:
        return finding if finding.problem else overdue
    recheck_after_s = soonest(finding.recheck_after_s, overdue.recheck_after_s)
    return _missing_replicas_finding(snapshot, job, gang, recheck_after_s)


def _failed_program_finding(snapshot: Snapshot, job: Native, finding: Finding) -> Finding:
    """The replica that failed first. Kubeflow counts the failure some time later."""
    awaited_s = cause_awaited_s(snapshot, job)
    if awaited_s > 0:
        return Finding(None, awaited_s)
    return finding._replace(problem=first_failure(snapshot, job) or finding.problem)


def _overdue_finding(owner: PinterestTrainingJob, job: Native, now: datetime) -> Finding:
    """Problem if Kubeflow has not ended the job some time after its deadline."""
    end = deadline_time(owner, job)
    if end is None:
        return Finding()
    left_s = (end - now).total_seconds() + GANG_CREATION_GRACE_S
    overdue = deadline_problem(owner)._replace(note="Kubeflow has not ended it yet")
    return Finding(None, left_s) if left_s > 0 else Finding(overdue)


def kubeflow_served(snapshot: Snapshot) -> bool:
    """True if the API server serves the kind, or if that is unknown."""
    served = snapshot.cluster.served_kinds
    return served is None or KUBEFLOW_KINDS[snapshot.owner.spec.framework] in served


def kubeflow_not_served(snapshot: Snapshot) -> Problem:
    owner: PinterestTrainingJob = snapshot.owner
    what = f"cluster {snapshot.cluster.name} serves no {KUBEFLOW_KINDS[owner.spec.framework]}, which it becomes"
    note = "Kubeflow's training operator provides it; the job starts as soon as that is installed"
    return Problem(reasons.KIND_NOT_SERVED, what, Where(object=owner.metadata.key), note, "pin up --with kubeflow")


def _replica_finding(snapshot: Snapshot, gang: Gang) -> Finding:
    """First problem of a replica: role by role, because roles differ in image and resources, the leader first."""
    owner: PinterestTrainingJob = snapshot.owner
    delays: list[float | None] = []
    for name, role in owner.spec.active_roles.items():
        role_snapshot = snapshot._replace(owner=msgspec.structs.replace(owner, spec=owner.spec.for_role(role)))
        finding = first_cause(role_snapshot, tuple(each.pod for each in gang.of_role(name).members))
        if finding.problem:
            return finding._replace(problem=_with_partial_scheduling(owner, gang, finding.problem))
        delays.append(finding.recheck_after_s)
    return Finding(None, soonest(*delays))


def _with_partial_scheduling(owner: PinterestTrainingJob, gang: Gang, problem: Problem) -> Problem:
    """Report a lack of capacity as partial scheduling if some replicas already occupy nodes in vain."""
    placed = [each for each in gang.members if each.succeeded or each.pod.has_condition("PodScheduled")]
    if problem.reason not in _CAPACITY_REASONS or not placed:
        return problem
    pending = join_first_few([replica_text(each.replica) for each in gang.members if each not in placed])
    what = f"{len(placed)} of {len(gang.replicas)} replicas scheduled, no node fits {pending}"
    next_ = f"{problem.next}; to release the occupied nodes: pin pause {owner.metadata.name}"
    return Problem(reasons.GANG_PARTIALLY_SCHEDULED, what, Where(object=owner.metadata.key), problem.note, next_)


def _missing_replicas_finding(snapshot: Snapshot, job: Native, gang: Gang, recheck_after_s: float | None) -> Finding:
    """Problem if Kubeflow has not created enough pods in time."""
    owner: PinterestTrainingJob = snapshot.owner
    if gang.can_start or job.find_condition("Succeeded"):
        return Finding(None, recheck_after_s)
    since = _last_creation(job, gang)
    age_s = (snapshot.now - since).total_seconds() if since else 0.0
    if age_s < GANG_CREATION_GRACE_S:
        return Finding(None, min(GANG_CREATION_GRACE_S - age_s, recheck_after_s or GANG_CREATION_GRACE_S))
    present = len(gang.replicas) - len(gang.missing)
    required = "all" if gang.min_replicas is None else str(gang.min_replicas)
    gated = f", none starts before {required} exist" if gang.gated_members else ""
    what = f"{present} of {len(gang.replicas)} replicas exist{gated}"
    note = f"missing: {join_first_few([replica_text(each) for each in gang.missing])}"
    next_ = f"pin show {owner.metadata.name}"
    return Finding(Problem(reasons.GANG_INCOMPLETE, what, Where(object=owner.metadata.key), note, next_))


def _last_creation(job: Native, gang: Gang) -> datetime | None:
    """Creation time of the youngest pod: as long as pods appear, Kubeflow is at work."""
    times = [_created_at(each.pod) for each in gang.members] or [_created_at(job)]
    return max((each for each in times if each), default=None)


def _created_at(created: Native | Pod) -> datetime | None:
    timestamp = created.metadata.creation_timestamp
    return datetime.fromisoformat(timestamp) if timestamp else None


def _not_responding_problem(snapshot: Snapshot, job: Native, gang: Gang) -> Problem | None:
    """Problem if Kubeflow has not reacted to the job: it sets a condition on every job that it observes."""
    created_at = _created_at(job)
    age_s = (snapshot.now - created_at).total_seconds() if created_at else 0.0
    if gang.members or job.status.conditions or age_s < GANG_CREATION_GRACE_S:
        return None
    what = "Kubeflow's training operator does not respond or is not installed"
    note = f"{job.kind.lower()} {job.metadata.name} has had no condition for {age_s:.0f} seconds"
    next_ = "ask the infrastructure team, or: kubectl get deployments -A"
    return Problem(reasons.KUBEFLOW_NOT_RESPONDING, what, Where(object=snapshot.owner.metadata.key), note, next_)


def _suspended_problem(owner: PinterestTrainingJob) -> Problem:
    what = f"suspended by {owner.spec.suspended}"
    return Problem(reasons.SUSPENDED, what, Where(object=owner.metadata.key), next=f"pin resume {owner.metadata.name}")


def _cannot_suspend(owner: PinterestTrainingJob) -> Problem:
    what = "created by another version of PinCompute and continues unchanged"
    note = "it cannot be suspended before it ends"
    next_ = f"wait, or start again: pin rerun {owner.metadata.name}"
    return Problem(reasons.CANNOT_CHANGE, what, Where(object=owner.metadata.key), note, next_)

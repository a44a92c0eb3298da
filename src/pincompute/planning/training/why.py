"""Why a training job is not done: what it waits for as a whole, and then what one of its copies suffers from."""

from __future__ import annotations

from datetime import datetime

import msgspec

from pincompute.api.status import SUCCEEDED, Condition
from pincompute.api.training_job import PinterestTrainingJob
from pincompute.base import reasons
from pincompute.base.problem import Problem, Where
from pincompute.planning import status
from pincompute.planning.plan import soonest
from pincompute.planning.snapshot import Native, Pod, Snapshot
from pincompute.planning.training.gang import Gang, called
from pincompute.planning.training.outcome import Outcome, finishing, said
from pincompute.planning.why import Finding, first_cause
from pincompute.planning.why.words import some

PATIENCE = 30.0
"""Seconds that Kubeflow may take to make all copies."""
NEEDED = {"pytorch": "PyTorchJob", "tensorflow": "TFJob"}
"""Kubeflow's kind, by the framework."""
_NO_ROOM = (reasons.UNSCHEDULABLE, reasons.NO_NODE_MATCHES)


def condition(snapshot: Snapshot, found: Gang, outcome: Outcome, why: Problem | None) -> Condition:
    """True or False once it has ended; until then nobody can know."""
    owner: PinterestTrainingJob = snapshot.owner
    if outcome.problem:
        return status.said(snapshot, SUCCEEDED, outcome.problem.reason, outcome.problem.message(), status=False)
    message = said(owner, found)
    if outcome.ended:
        return status.said(snapshot, SUCCEEDED, reasons.SUCCEEDED, message, status=True)
    if why:
        return status.said(snapshot, SUCCEEDED, why.reason, f"{message}; {why.message()}", status=None)
    waits = finishing(owner, found)
    return status.said(
        snapshot, SUCCEEDED, reasons.PROGRESSING, f"{message}; {waits}" if waits else message, status=None
    )


def why(snapshot: Snapshot, job: Native | None, found: Gang, outcome: Outcome, *, stays: bool) -> Finding:
    """What is on purpose, then what the whole waits for, then what one copy suffers from."""
    owner: PinterestTrainingJob = snapshot.owner
    if outcome.ended:
        return Finding(outcome.problem)
    if owner.spec.suspended and not (job and job.says("Succeeded")):
        return Finding(_cannot_change(owner) if stays else _suspended(owner))
    if job is None:
        return Finding()
    silent = _unheard(snapshot, job, found)
    finding = Finding(silent) if silent else _copies(snapshot, found)
    return finding if finding.problem else _incomplete(snapshot, job, found, finding.look_again)


def served(snapshot: Snapshot) -> bool:
    """Where the cluster does not say, it is tried."""
    serves = snapshot.cluster.serves
    return serves is None or NEEDED[snapshot.owner.spec.framework] in serves


def not_served(snapshot: Snapshot) -> Problem:
    owner: PinterestTrainingJob = snapshot.owner
    what = f"the cluster {snapshot.cluster.name} serves no {NEEDED[owner.spec.framework]}, which it becomes"
    note = "Kubeflow's training operator brings it; from then on this goes on by itself"
    return Problem(reasons.KIND_NOT_SERVED, what, Where(object=owner.metadata.place), note, "pin up --with kubeflow")


def _copies(snapshot: Snapshot, found: Gang) -> Finding:
    """Each role as it is, the one that leads first: what a copy is given may differ."""
    owner: PinterestTrainingJob = snapshot.owner
    again: list[float | None] = []
    for name, role in owner.spec.members.items():
        whole = snapshot._replace(owner=msgspec.structs.replace(owner, spec=owner.spec.of(role)))
        finding = first_cause(whole, tuple(each.pod for each in found.of(name).members))
        if finding.problem:
            return finding._replace(problem=_split(owner, found, finding.problem))
        again.append(finding.look_again)
    return Finding(None, soonest(*again))


def _split(owner: PinterestTrainingJob, found: Gang, problem: Problem) -> Problem:
    """Where some have a node and hold it, it is worse than that one has none."""
    placed = [each for each in found.members if each.done or each.pod.says("PodScheduled")]
    if problem.reason not in _NO_ROOM or not placed:
        return problem
    without = [called(each.seat) for each in found.members if each not in placed]
    what = f"{len(placed)} of {len(found.seats)} copies have a node, and none has room for {some(without)}"
    next_ = f"{problem.next}; to give back what it holds: pin pause {owner.metadata.name}"
    return Problem(reasons.GANG_SPLIT, what, Where(object=owner.metadata.place), problem.note, next_)


def _incomplete(snapshot: Snapshot, job: Native, found: Gang, again: float | None) -> Finding:
    """Kubeflow is still making them, or cannot."""
    owner: PinterestTrainingJob = snapshot.owner
    if found.enough or job.says("Succeeded"):
        return Finding(None, again)
    since = _since(job, found)
    age = (snapshot.now - since).total_seconds() if since else 0.0
    if age < PATIENCE:
        return Finding(None, min(PATIENCE - age, again or PATIENCE))
    there = len(found.seats) - len(found.missing)
    needed = "all" if found.least is None else str(found.least)
    held = f", and none starts before {needed} are" if found.gated else ""
    what = f"{there} of {len(found.seats)} copies are there{held}"
    note = f"missing: {some([called(each) for each in found.missing])}"
    next_ = f"pin show {owner.metadata.name}"
    return Finding(Problem(reasons.GANG_INCOMPLETE, what, Where(object=owner.metadata.place), note, next_))


def _since(job: Native, found: Gang) -> datetime | None:
    """When the youngest was made: each that comes shows that Kubeflow is at work."""
    moments = [_made(each.pod) for each in found.members] or [_made(job)]
    return max((each for each in moments if each), default=None)


def _made(what: Native | Pod) -> datetime | None:
    said = what.metadata.creation_timestamp
    return datetime.fromisoformat(said) if said else None


def _unheard(snapshot: Snapshot, job: Native, found: Gang) -> Problem | None:
    """Kubeflow says something of every job that it sees."""
    made = _made(job)
    age = (snapshot.now - made).total_seconds() if made else 0.0
    if found.members or job.status.conditions or age < PATIENCE:
        return None
    note = f"nobody has taken up {job.kind.lower()} {job.metadata.name} in {age:.0f} seconds"
    return _silent(snapshot.owner, note)


def _silent(owner: PinterestTrainingJob, note: str) -> Problem:
    what = "Kubeflow's training operator is needed for a training job, and is not there or does not run"
    next_ = "ask the infrastructure team for it, or: kubectl get deployments -A"
    return Problem(reasons.KUBEFLOW_SILENT, what, Where(object=owner.metadata.place), note, next_)


def _suspended(owner: PinterestTrainingJob) -> Problem:
    what = f"it is suspended by {owner.spec.suspended}"
    return Problem(
        reasons.SUSPENDED, what, Where(object=owner.metadata.place), next=f"pin resume {owner.metadata.name}"
    )


def _cannot_change(owner: PinterestTrainingJob) -> Problem:
    what = "it was made by another version of PinCompute, and goes on as it began"
    note = "it cannot be suspended before it has ended"
    next_ = f"wait, or begin anew: pin rerun {owner.metadata.name}"
    return Problem(reasons.CANNOT_CHANGE, what, Where(object=owner.metadata.place), note, next_)

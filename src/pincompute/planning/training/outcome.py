"""Result of a training job.

Kubeflow reports a job as succeeded when its leader has succeeded. Here all replicas that have to succeed count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from pincompute.api.cancellation import cancelled_by
from pincompute.api.status import SUCCEEDED, find_condition
from pincompute.api.training_job import PinterestTrainingJob
from pincompute.base import reasons
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import find_reason
from pincompute.planning.diagnosis.container_start import NEVER_STARTED_REASONS, start_failure_problem
from pincompute.planning.diagnosis.excerpts import join_first_few, last_line
from pincompute.planning.diagnosis.exits import more_memory
from pincompute.planning.observed_pods import ContainerStatus, Pod, Terminated
from pincompute.planning.pods.pod import DEFAULT_MEMORY
from pincompute.planning.snapshot import Native, Snapshot
from pincompute.planning.training import retries
from pincompute.planning.training.gang import (
    REPLICA_INDEX_LABEL,
    REPLICA_TYPE_LABEL,
    Gang,
    awaited_members,
    replica_text,
)

UNIDENTIFIED_FAILURE = "a replica failed"
"""Message if it is unknown which replica failed."""
PEER_END_GRACE_S = 15.0
"""Time that the end of the replica that others lost may take to be reported after theirs."""
_LOST_CONNECTION = re.compile(
    r"(connection|socket) (was )?(reset|closed|aborted|refused)|broken pipe|EOFError|remote process exited",
    re.IGNORECASE,
)
"""Last lines of programs whose peer has ended: of Python, gloo, NCCL and gRPC."""


class TrainingOutcome(NamedTuple):
    """Result of a training job; not ended while it trains."""

    ended: bool = False
    problem: Problem | None = None
    """Cause of failure; None after a success."""

    @property
    def succeeded(self) -> bool:
        return self.ended and self.problem is None


def find_outcome(snapshot: Snapshot, job: Native | None, gang: Gang, failures: Mapping[str, int]) -> TrainingOutcome:
    """Result as recorded in the status, or as observed now. `failures` are those of all pods of the job."""
    owner: PinterestTrainingJob = snapshot.owner
    if owner.status.ended:
        before = recorded_problem(owner)
        # The event of Kubeflow's job may arrive before that of the pod that failed.
        identified = first_failure(snapshot, job) if before and job and before.what == UNIDENTIFIED_FAILURE else None
        return TrainingOutcome(True, identified or before)
    cancelled = _cancelled_problem(owner, job)
    if job is None:
        return TrainingOutcome(cancelled is not None, cancelled)
    awaited = _without_succeeded_leader(snapshot, job, awaited_members(owner.spec, gang))
    succeeded = {each.replica for each in awaited.members if each.succeeded}
    begun = bool(awaited.replicas) or bool(job.find_condition("Succeeded"))
    if begun and all(replica in succeeded for replica in awaited.replicas):
        return TrainingOutcome(True)
    problem = _job_failure(snapshot, job) or (
        _failure_after_leader(snapshot, job, awaited) if job.find_condition("Succeeded") else None
    )
    if problem is None and retries.retries_exhausted(owner, failures):
        problem = retries.exhausted_problem(owner, failures, first_failure(snapshot, job))
    problem = problem or cancelled
    return TrainingOutcome(problem is not None, problem)


def _cancelled_problem(owner: PinterestTrainingJob, job: Native | None) -> Problem | None:
    """The cancellation, once Kubeflow has suspended the job and thus ended its replicas."""
    by = cancelled_by(owner.spec.cancelled, owner.spec.attempt)
    if not by or (job and not job.find_condition("Suspended")):
        return None
    return Problem(reasons.CANCELLED, f"cancelled by {by}", Where(object=owner.metadata.key), next=_rerun(owner))


def _without_succeeded_leader(snapshot: Snapshot, job: Native, awaited: Gang) -> Gang:
    """Leave out the leader after Kubeflow has reported its success, because its pod may be deleted by now."""
    if not job.find_condition("Succeeded"):
        return awaited
    leader = (snapshot.owner.spec.leader, 0)
    return Gang(
        tuple(replica for replica in awaited.replicas if replica != leader),
        tuple(each for each in awaited.members if each.replica != leader),
    )


def deadline_time(owner: PinterestTrainingJob, job: Native | None) -> datetime | None:
    """Time by which the job must have ended. Kubeflow itself stops checking when the leader has succeeded."""
    seconds = owner.spec.deadline_seconds
    start = job.status.start_time if job else None
    return start + timedelta(seconds=seconds) if start and seconds else None


def progress_text(owner: PinterestTrainingJob, gang: Gang) -> str:
    """Number of replicas that have succeeded and that are running."""
    succeeded = sum(each.succeeded for each in gang.members)
    running = sum(each.is_running for each in gang.members)
    if owner.status.ended and not gang.members:
        succeeded = owner.status.done
    text = f"{succeeded} of {len(gang.replicas)} replicas succeeded"
    return f"{text}, {running} running" if running else text


def awaited_text(owner: PinterestTrainingJob, gang: Gang) -> str:
    """Replicas that the job waits for after its leader has succeeded; empty before."""
    leader = gang.of_role(owner.spec.leader).members[:1]
    if not leader or not leader[0].succeeded:
        return ""
    open_members = [each for each in awaited_members(owner.spec, gang).members if not each.succeeded]
    waiting = join_first_few([replica_text(each.replica) for each in open_members])
    return f"{owner.spec.leader} succeeded, waiting for {waiting}" if open_members else ""


def recorded_problem(owner: PinterestTrainingJob) -> Problem | None:
    """Cause of failure according to the condition: the pods it was read from may be deleted."""
    before = find_condition(owner.status.conditions, SUCCEEDED)
    if before is None or before.status == "True":
        return None
    return Problem(
        find_reason(before.reason) or reasons.REPLICA_FAILED,
        before.message,
        Where(object=owner.metadata.key),
        next=owner.status.next,
    )


def _job_failure(snapshot: Snapshot, job: Native) -> Problem | None:
    """Failure that Kubeflow reports, with the replica that caused it."""
    failed = job.find_condition("Failed")
    if failed is None:
        return None
    if "deadline" in failed.message:
        return deadline_problem(snapshot.owner)
    if cause_awaited_s(snapshot, job) > 0:
        return None
    return first_failure(snapshot, job) or _unidentified_failure(snapshot, failed.message)


def _failure_after_leader(snapshot: Snapshot, job: Native, awaited: Gang) -> Problem | None:
    """Failure after the leader has succeeded. Kubeflow then restarts no replica and ignores the deadline."""
    owner: PinterestTrainingJob = snapshot.owner
    end = deadline_time(owner, job)
    if any(each.failed for each in awaited.members):
        return first_failure(snapshot, job) or _unidentified_failure(snapshot, "")
    if awaited.missing:
        what = f"{join_first_few([replica_text(each) for each in awaited.missing])} lost before its end"
        note = f"the {owner.spec.leader} has succeeded, so that Kubeflow does not recreate it"
        return Problem(reasons.REPLICA_LOST, what, Where(object=owner.metadata.key), note, _rerun(owner))
    return deadline_problem(owner) if end and snapshot.now >= end else None


class _Failure(NamedTuple):
    pod: Pod
    container: ContainerStatus
    end: Terminated


def cause_awaited_s(snapshot: Snapshot, job: Native) -> float:
    """Seconds for which the known failure is taken for an effect.

    Its last line tells of a lost connection, and the end of the replica at the other side may be reported later.
    """
    failure = _find_first_failure(snapshot, job)
    all_ended = all(each.status.phase in {"Failed", "Succeeded"} for each in _pods_of(snapshot, job))
    if failure is None or all_ended or not _lost_a_peer(failure.end) or not failure.end.finished_at:
        return 0.0
    return PEER_END_GRACE_S - (snapshot.now - datetime.fromisoformat(failure.end.finished_at)).total_seconds()


def _pods_of(snapshot: Snapshot, job: Native) -> list[Pod]:
    return [each for each in snapshot.pods if each.metadata.controller_uid == job.metadata.uid]


def _find_first_failure(snapshot: Snapshot, job: Native) -> _Failure | None:
    """The others fail within the same second, as they lose the connection to it. Times are whole seconds."""
    owner: PinterestTrainingJob = snapshot.owner
    ends = [(pod, *_failed_container(owner, pod)) for pod in _pods_of(snapshot, job)]
    failures = [_Failure(pod, container, end) for pod, container, end in ends if container and end]
    return min(
        failures, key=lambda each: (_lost_a_peer(each.end), each.end.finished_at, each.pod.metadata.name), default=None
    )


def first_failure(snapshot: Snapshot, job: Native) -> Problem | None:
    """Failure of the replica that failed first, even if its pod is being deleted."""
    owner: PinterestTrainingJob = snapshot.owner
    failure = _find_first_failure(snapshot, job)
    if failure is None:
        return None
    pod, container, end = failure
    labels = pod.metadata.labels
    replica = f"{labels.get(REPLICA_TYPE_LABEL, 'replica')} {labels.get(REPLICA_INDEX_LABEL, '')}".strip()
    where = "" if container.name == owner.main_container_name else f" in container {container.name}"
    if end.reason == "OOMKilled":
        what = f"{replica} ran out of memory{where}"
        return Problem(reasons.OUT_OF_MEMORY, what, Where(object=owner.metadata.key), next=_rerun_with_more(owner))
    if end.reason in NEVER_STARTED_REASONS:
        start = start_failure_problem(container, end.message)
        what, next_ = f"{replica} cannot start: {start.what}", "correct command in the file, and: pin deploy FILE"
        return Problem(start.reason, what, Where(object=owner.metadata.key), start.note, next_)
    line = last_line(end.message)
    note = f"last line: {line}" if line else ""
    return Problem(
        reasons.REPLICA_FAILED,
        f"{replica} failed{where} with exit code {end.exit_code}",
        Where(object=owner.metadata.key),
        note,
        f"pin logs {owner.metadata.name}/{replica.replace(' ', '-')}, then: {_rerun(owner)}",
    )


def _lost_a_peer(end: Terminated) -> bool:
    """True if the program ended because another replica had: its last line tells of a lost connection."""
    return _LOST_CONNECTION.search(last_line(end.message)) is not None


def _failed_container(owner: PinterestTrainingJob, pod: Pod) -> tuple[ContainerStatus | None, Terminated | None]:
    """First failed container and its end; the main container comes before sidecars."""
    status = pod.status
    containers = (*status.container_statuses, *status.init_container_statuses)
    for container in sorted(containers, key=lambda each: each.name != owner.main_container_name):
        end = container.state.terminated or (None if container.ready else container.last_state.terminated)
        if end and end.exit_code:
            return container, end
    return None, None


def _unidentified_failure(snapshot: Snapshot, message: str) -> Problem:
    """Failure without a failed pod: the last recorded condition is the best information that is left."""
    owner: PinterestTrainingJob = snapshot.owner
    before = find_condition(owner.status.conditions, SUCCEEDED)
    what = "replicas restarted more often than retries allows" if "backoff" in message else UNIDENTIFIED_FAILURE
    if before is None or before.reason in {reasons.PROGRESSING.code, reasons.SUSPENDED.code}:
        return Problem(reasons.REPLICA_FAILED, what, Where(object=owner.metadata.key), next=_rerun(owner))
    reason = find_reason(before.reason) or reasons.REPLICA_FAILED
    note = f"before: {before.message}"
    return Problem(reason, what, Where(object=owner.metadata.key), note, _rerun(owner))


def deadline_problem(owner: PinterestTrainingJob) -> Problem:
    what = f"not done within deadlineSeconds: {owner.spec.deadline_seconds}"
    return Problem(
        reasons.DEADLINE_EXCEEDED,
        what,
        Where(object=owner.metadata.key),
        next=f"raise deadlineSeconds in the file, and: {_rerun(owner)}",
    )


def _rerun(owner: PinterestTrainingJob) -> str:
    return f"pin rerun {owner.metadata.name}"


def _rerun_with_more(owner: PinterestTrainingJob) -> str:
    """Command that reruns the job with twice the memory, if all replicas have the same amount."""
    spec = owner.spec
    memory = spec.memory or ("" if spec.template else DEFAULT_MEMORY)
    if not memory or any(role.memory for role in spec.active_roles.values()):
        return f"raise memory in the file, and: {_rerun(owner)}"
    return f"{_rerun(owner)} --memory {more_memory(memory)}"

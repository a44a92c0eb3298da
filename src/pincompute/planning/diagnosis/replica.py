"""Explains one replica or task of a workload, for `pin why NAME/REPLICA`."""

from __future__ import annotations

import msgspec

from pincompute.api.job_set import PinterestJobSet
from pincompute.api.job_set_status import TaskFailure
from pincompute.api.workload_detail import Diagnosis, ReplicaDetail, WorkloadDetail
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import AVAILABLE, OUT_OF_MEMORY, PROGRESSING, REPLICA_FAILED, REPLICA_UNKNOWN, SUCCEEDED
from pincompute.objects.number_sets import parse_numbers
from pincompute.planning.batch.outcome import last_attempt_of_task, memory_of_tasks
from pincompute.planning.diagnosis.exits import more_memory

_MAX_NAMED_REPLICAS = 10
_WORKING_STATES = {"Ready", "Running", "Succeeded", "Starting", "Pending", "Terminating"}


def explain_replica(detail: WorkloadDetail, replica: str) -> Diagnosis:
    """Refused if there is no such replica."""
    if detail.summary.kind == PinterestJobSet.__name__ and replica.isdecimal():
        return _explain_task(msgspec.convert(detail.resource, PinterestJobSet), detail, int(replica))
    found = [each for each in detail.replicas if each.name == replica or each.name.endswith(f"-{replica}")]
    if not found:
        raise Refused(_unknown_replica(detail, replica, [each.name for each in detail.replicas]))
    return _explain_pod(detail, replica, found[0])


def _explain_task(job_set: PinterestJobSet, detail: WorkloadDetail, task: int) -> Diagnosis:
    status = job_set.status
    name = f"{job_set.metadata.name}/{task}"
    if task >= job_set.spec.task_count:
        raise Refused(_unknown_replica(detail, str(task), [f"0 to {job_set.spec.task_count - 1}"]))
    failure = next((each for each in status.failures if task in parse_numbers(each.tasks)), None)
    if failure:
        attempt = last_attempt_of_task(status.attempts, task)
        return Diagnosis(
            label=name,
            is_problem=True,
            reason=failure.reason,
            what=_failure_text(failure, attempt if len(status.attempts) > 1 else 0),
            note=_other_tasks(failure),
            next=_task_remedy(job_set, failure, task),
            waits_for="you",
        )
    if task in parse_numbers(status.completed):
        return Diagnosis(label=name, is_problem=False, reason=SUCCEEDED.code, what="succeeded")
    what = f"not finished yet; {status.running} of {status.tasks} tasks are running"
    next_ = f"pin why {job_set.metadata.name}"
    return Diagnosis(label=name, is_problem=False, reason=PROGRESSING.code, what=what, next=next_)


def _failure_text(failure: TaskFailure, attempt: int) -> str:
    exit_text = f" with exit code {failure.exit_code}" if failure.exit_code else ""
    last_line = f': last line "{failure.message}"' if failure.message else ""
    return f"failed{f' in attempt {attempt}' if attempt else ''}{exit_text}{last_line}"


def _other_tasks(failure: TaskFailure) -> str:
    others = failure.count - 1
    return f"{others} other task{'s' if others > 1 else ''} failed for the same reason" if others else ""


def _task_remedy(job_set: PinterestJobSet, failure: TaskFailure, task: int) -> str:
    rerun = f"pin rerun {job_set.metadata.name} --task {task}"
    if failure.reason == OUT_OF_MEMORY.code:
        memory = memory_of_tasks(job_set.spec, job_set.status.attempts, [task])
        return f"{rerun} --memory {more_memory(memory)}"
    return f"pin logs {job_set.metadata.name}/{task}, then: {rerun}"


def _explain_pod(detail: WorkloadDetail, replica: str, pod: ReplicaDetail) -> Diagnosis:
    name = detail.summary.name
    is_problem = pod.state not in _WORKING_STATES
    node = f" on {pod.node}" if pod.node else ""
    return Diagnosis(
        label=f"{name}/{replica}",
        is_problem=is_problem,
        reason=(REPLICA_FAILED if is_problem else AVAILABLE if pod.ready else PROGRESSING).code,
        what=f"{pod.state}{node}, {pod.restarts} restart{'' if pod.restarts == 1 else 's'}",
        where=f"Pod/{pod.name}",
        next=f"pin why {name}" if is_problem or not pod.ready else "",
        waits_for="you" if is_problem else "",
    )


def _unknown_replica(detail: WorkloadDetail, replica: str, known: list[str]) -> Problem:
    summary = detail.summary
    more = f" and {len(known) - _MAX_NAMED_REPLICAS} more" if len(known) > _MAX_NAMED_REPLICAS else ""
    return Problem(
        REPLICA_UNKNOWN,
        f"{summary.name} has no replica '{replica}'",
        Where(object=f"{summary.project}/{summary.name}"),
        note=f"replicas: {', '.join(known[:_MAX_NAMED_REPLICAS]) or 'none'}{more}",
        next=f"pin show {summary.name}",
    )

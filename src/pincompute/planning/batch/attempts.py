"""Progress of a batch: which tasks are done, which failed and why, and which attempt runs.

In: the status that the previous pass wrote, and the Jobs and pods as they are now. Out: a `BatchState`, which merges
the two. A batch is a sequence of attempts: the first runs all tasks, and each rerun that a user requests runs some of
them again. A task belongs to at most one running attempt.

The invariants, all of which have to survive a crash between any two writes:

- A finished attempt is never evaluated again. Its result is in the status, so that its Jobs may be deleted.
- A running attempt keeps the tasks it started with. They are written on its Jobs, because the pass that creates a Job
  may end before it writes the status. The next pass finds the Job and takes revision, tasks and runtime from it, so
  that no attempt is started twice.
- The state depends on the hash of the work (`revision_content`). Fields that may change while tasks run are not part
  of it; any other change starts a new revision, without attempts, done tasks or failures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from pincompute.api.cancellation import cancelled_by
from pincompute.api.job_set import MAX_RETAINED_TASKS, JobSetSpec
from pincompute.api.job_set_status import AttemptStatus, JobSetStatus
from pincompute.api.names import (
    ATTEMPT_LABEL,
    REVISION_ANNOTATION,
    RUNTIME_ANNOTATION,
    TASKS_ANNOTATION,
    WORK_HASH_ANNOTATION,
)
from pincompute.api.task import FAILED_TASKS, Attempt
from pincompute.base.reasons import CANCELLED, DEADLINE_EXCEEDED, SUCCEEDED, TASK_FAILED, TOO_MANY_FAILED
from pincompute.objects.number_sets import format_numbers, parse_numbers, scaled_value
from pincompute.objects.times import format_time
from pincompute.planning import names
from pincompute.planning.batch.failures import FailureCause, find_task_failure, recorded_failures
from pincompute.planning.observed_pods import Pod
from pincompute.planning.revision_number import present_revision, revision_content
from pincompute.planning.snapshot import Native, Snapshot

_JOB_NAME = "batch.kubernetes.io/job-name"
_JOB_INDEX = "batch.kubernetes.io/job-completion-index"
_UNKNOWN = FailureCause()
_DEADLINE = FailureCause(DEADLINE_EXCEEDED.code, message="the attempt exceeded its deadline")
_TOO_MANY_FAILED = FailureCause(TOO_MANY_FAILED.code, message="ended because too many other tasks failed")
_CAUSE_BY_JOB_REASON = MappingProxyType({"DeadlineExceeded": _DEADLINE, "MaxFailedIndexesExceeded": _TOO_MANY_FAILED})


class BatchState(NamedTuple):
    """Progress of the work of one revision."""

    revision: int
    work_hash: str
    attempts: tuple[AttemptStatus, ...] = ()
    done: frozenset[int] = frozenset()
    failures: Mapping[int, FailureCause] = MappingProxyType({})
    """Cause of failure by task."""

    @property
    def running_attempt(self) -> AttemptStatus | None:
        return self.attempts[-1] if self.attempts and not self.attempts[-1].ended else None

    def with_last_attempt(self, attempt: AttemptStatus) -> BatchState:
        return self._replace(attempts=(*self.attempts[:-1], attempt))


def batch_state(snapshot: Snapshot) -> BatchState:
    """Evaluate the attempts one after the other, up to the one that still runs."""
    state = _recorded_state(snapshot)
    requested: list[Attempt | None] = [None, *snapshot.owner.spec.attempts]
    state = state._replace(attempts=state.attempts[: len(requested)])
    for number, rerun in enumerate(requested, 1):
        if number > len(state.attempts):
            state = _begin_attempt(snapshot, state, number, rerun)
        if not state.attempts[number - 1].ended:
            state = _observe_attempt(snapshot, state)
        if not state.attempts[number - 1].ended:
            return state
    if len(state.done) < snapshot.owner.spec.required_tasks:
        # Tasks of an attempt that was removed from the file belong to no attempt any more.
        left_over = set(range(snapshot.owner.spec.task_count)) - state.done - state.failures.keys()
        causes = dict.fromkeys(sorted(left_over), FailureCause(message="no attempt completed the task"))
        state = state._replace(failures=MappingProxyType({**state.failures, **causes}))
    return state


def find_jobs(snapshot: Snapshot, state: BatchState, number: int = 0) -> dict[str, Native]:
    """Jobs of the revision, or of one of its attempts, by name."""
    return {
        job.metadata.name: job
        for job in _jobs_of_work(snapshot, state.work_hash)
        if job.metadata.annotations.get(REVISION_ANNOTATION) == str(state.revision)
        and number in {0, job.int_annotation(ATTEMPT_LABEL)}
    }


def job_pods(snapshot: Snapshot, job: str) -> tuple[Pod, ...]:
    return tuple(pod for pod in snapshot.pods if pod.metadata.labels.get(_JOB_NAME) == job)


def active_job_pods(snapshot: Snapshot, job_names: Iterable[str]) -> tuple[Pod, ...]:
    """Active pods of several Jobs, sorted by name."""
    found = (pod for name in job_names for pod in job_pods(snapshot, name) if pod.is_active)
    return tuple(sorted(found, key=lambda pod: pod.metadata.name))


def retry_causes(pods_by_index: Iterable[Sequence[Pod]]) -> list[FailureCause]:
    """Cause of the last failure for each index that has failed and is being retried."""
    return [
        find_task_failure(pods)
        for pods in pods_by_index
        if any(pod.status.phase == "Failed" for pod in pods)
        and not any(pod.status.phase == "Succeeded" for pod in pods)
    ]


def pods_by_open_index(snapshot: Snapshot, jobs: Mapping[str, Native]) -> list[list[Pod]]:
    """Pods of each index of these Jobs that has neither succeeded nor failed for good."""
    found: dict[tuple[str, str], list[Pod]] = {}
    for name in sorted(each for each in jobs if not is_finished(jobs[each])):
        status = jobs[name].status
        closed = {str(each) for each in parse_numbers(status.completed_indexes) | parse_numbers(status.failed_indexes)}
        for pod in job_pods(snapshot, name):
            job, index = _job_and_index(pod)
            if index not in closed:
                found.setdefault((job, index), []).append(pod)
    return [*found.values()]


def has_begun(snapshot: Snapshot, state: BatchState, attempt: AttemptStatus) -> bool:
    """True if the attempt is recorded in the status or has a Job. It then keeps its runtime."""
    status: JobSetStatus = snapshot.owner.status
    recorded = status.work == state.work_hash and any(each.number == attempt.number for each in status.attempts)
    return recorded or bool(find_jobs(snapshot, state, attempt.number))


def has_job_per_task(snapshot: Snapshot, state: BatchState, attempt: AttemptStatus) -> bool:
    """True if each task has a Job of its own: to keep its claims, or to have its number in a variable.

    The pods of one Job are numbered from 0 without gaps. A rerun of chosen tasks therefore needs a Job per task if the
    program finds its number in the variable. One that runs as a single Job already continues so.
    """
    spec: JobSetSpec = snapshot.owner.spec
    if spec.has_retained_claims:
        return True
    numbers = sorted(parse_numbers(attempt.tasks))
    if numbers == list(range(len(numbers))) or not spec.uses_task_variable:
        return False
    single = names.job(snapshot.owner, state.revision, attempt.number)
    return single not in find_jobs(snapshot, state, attempt.number)


def runnable_tasks(snapshot: Snapshot, state: BatchState, attempt: AttemptStatus) -> list[int]:
    """Tasks that should have a Job of their own now: those that have one, and more up to the parallelism."""
    spec: JobSetSpec = snapshot.owner.spec
    jobs = find_jobs(snapshot, state, attempt.number)
    open_tasks = unfinished_tasks(state, attempt)
    running = [
        task for task in open_tasks if names.task_job(snapshot.owner, state.revision, attempt.number, task) in jobs
    ]
    free = max(0, min(spec.parallelism or len(open_tasks), MAX_RETAINED_TASKS) - len(running))
    waiting = [task for task in open_tasks if task not in running]
    return sorted([*running, *waiting[:free]])


def is_finished(job: Native) -> bool:
    return bool(job.find_condition("Complete") or job.find_condition("Failed"))


def is_suspended(job: Native) -> bool:
    return bool(job.find_condition("Suspended"))


def unfinished_tasks(state: BatchState, attempt: AttemptStatus) -> list[int]:
    return sorted(parse_numbers(attempt.tasks) - state.done - state.failures.keys())


def deadline_left_s(snapshot: Snapshot, attempt: AttemptStatus, *, per_task: bool) -> float | None:
    """Seconds until the deadline of an attempt with a Job per task; that of a single Job is left to Kubernetes."""
    spec: JobSetSpec = snapshot.owner.spec
    if not per_task or not spec.deadline_seconds or spec.suspended:
        return None
    elapsed_s = (snapshot.now - datetime.fromisoformat(attempt.began)).total_seconds()
    return max(0.0, spec.deadline_seconds - elapsed_s)


def _job_and_index(pod: Pod) -> tuple[str, str]:
    labels = pod.metadata.labels
    return labels.get(_JOB_NAME, ""), labels.get(_JOB_INDEX, "")


def _jobs_of_work(snapshot: Snapshot, work_hash: str) -> Iterator[Native]:
    return (
        each
        for each in snapshot.natives
        if each.kind == "Job"
        and each.metadata.controller_uid == snapshot.owner.metadata.uid
        and each.metadata.annotations.get(WORK_HASH_ANNOTATION) == work_hash
    )


def _recorded_state(snapshot: Snapshot) -> BatchState:
    """State according to the status, if that describes the same work."""
    status: JobSetStatus = snapshot.owner.status
    work_hash = revision_content(snapshot.owner.spec)
    if status.work != work_hash:
        return BatchState(present_revision(snapshot).number, work_hash)
    failures = MappingProxyType(recorded_failures(status.failures))
    return BatchState(status.revision, work_hash, tuple(status.attempts), parse_numbers(status.completed), failures)


def _begin_attempt(snapshot: Snapshot, state: BatchState, number: int, rerun: Attempt | None) -> BatchState:
    """Add an attempt, with the tasks of its Job if there is one. Former results of its tasks are dropped."""
    job = next(iter(find_jobs(snapshot, state, number).values()), None)
    annotations = job.metadata.annotations if job else {}
    tasks = (
        parse_numbers(annotations[TASKS_ANNOTATION])
        if TASKS_ANNOTATION in annotations
        else _requested_tasks(snapshot.owner.spec, state, rerun)
    )
    now = format_time(snapshot.now)
    attempt = AttemptStatus(
        number=number, tasks=format_numbers(tasks), began=now, runtime=int(annotations.get(RUNTIME_ANNOTATION, "0"))
    )
    if not tasks:
        attempt = msgspec.structs.replace(attempt, ended=now, reason=SUCCEEDED.code)
    return state._replace(
        attempts=(*state.attempts, attempt),
        done=state.done - tasks,
        failures=MappingProxyType({task: cause for task, cause in state.failures.items() if task not in tasks}),
    )


def _requested_tasks(spec: JobSetSpec, state: BatchState, rerun: Attempt | None) -> frozenset[int]:
    if rerun is None:
        return frozenset(range(spec.task_count))
    if rerun.tasks == FAILED_TASKS:
        return frozenset(task for task, cause in state.failures.items() if rerun.reason in {"Any", cause.reason})
    return parse_numbers(rerun.tasks)


def _observe_attempt(snapshot: Snapshot, state: BatchState) -> BatchState:
    """Add the results of the running attempt. If it has ended early, its open tasks fail for that reason."""
    attempt = state.attempts[-1]
    observe = _observe_task_jobs if has_job_per_task(snapshot, state, attempt) else _observe_indexed_job
    state, end = observe(snapshot, state, attempt)
    end = end or _cancellation(snapshot, state, attempt)
    if end is not None and end.reason != SUCCEEDED.code:
        causes = dict.fromkeys(unfinished_tasks(state, attempt), end)
        state = state._replace(failures=MappingProxyType({**state.failures, **causes}))
    tasks = parse_numbers(attempt.tasks)
    return state.with_last_attempt(
        msgspec.structs.replace(
            attempt,
            done=len(tasks & state.done),
            failed=len(tasks & state.failures.keys()),
            ended=format_time(snapshot.now) if end else "",
            reason=end.reason if end else "",
        )
    )


def _cancellation(snapshot: Snapshot, state: BatchState, attempt: AttemptStatus) -> FailureCause | None:
    """The end of a cancelled attempt, once all of its Jobs that have not finished are suspended.

    A suspended Job keeps its finished pods and their logs.
    """
    spec: JobSetSpec = snapshot.owner.spec
    by = cancelled_by(spec.cancelled, attempt.number)
    jobs = find_jobs(snapshot, state, attempt.number).values()
    if not by or any(not is_finished(job) and not is_suspended(job) for job in jobs):
        return None
    return FailureCause(CANCELLED.code, message=f"cancelled by {by}")


def _observe_indexed_job(
    snapshot: Snapshot, state: BatchState, attempt: AttemptStatus
) -> tuple[BatchState, FailureCause | None]:
    """Read the results of the one indexed Job, and how it ended. Kubernetes itself enforces its limits."""
    name = names.job(snapshot.owner, state.revision, attempt.number)
    job = find_jobs(snapshot, state, attempt.number).get(name)
    if job is None:
        return state, None
    tasks = sorted(parse_numbers(attempt.tasks))
    pods_by_index: dict[str, list[Pod]] = {}
    for pod in job_pods(snapshot, name):
        pods_by_index.setdefault(_job_and_index(pod)[1], []).append(pod)
    failed_tasks = _tasks_at(tasks, job.status.failed_indexes)
    state = _with_results(
        state,
        _tasks_at(tasks, job.status.completed_indexes).values(),
        {task: (pods_by_index.get(str(index), ()), None) for index, task in failed_tasks.items()},
    )
    if job.find_condition("Complete"):
        return state, FailureCause(SUCCEEDED.code)
    failed = job.find_condition("Failed")
    if failed is None:
        return state, None
    return state, _CAUSE_BY_JOB_REASON.get(failed.reason, FailureCause(message=failed.message[:256]))


def _tasks_at(tasks: Sequence[int], indexes: str) -> dict[int, int]:
    """Task by index. Indexes beyond the tasks of the attempt are ignored."""
    return {index: tasks[index] for index in sorted(parse_numbers(indexes)) if index < len(tasks)}


def _observe_task_jobs(
    snapshot: Snapshot, state: BatchState, attempt: AttemptStatus
) -> tuple[BatchState, FailureCause | None]:
    """Read the results of a Job per task, and enforce the limits of the attempt: Kubernetes knows none across Jobs."""
    spec: JobSetSpec = snapshot.owner.spec
    jobs = find_jobs(snapshot, state, attempt.number)
    tasks = sorted(parse_numbers(attempt.tasks))
    done: list[int] = []
    failed: dict[int, tuple[Sequence[Pod], FailureCause | None]] = {}
    for task in tasks:
        name = names.task_job(snapshot.owner, state.revision, attempt.number, task)
        job = jobs.get(name)
        if job and job.find_condition("Complete"):
            done.append(task)
        elif job and (condition := job.find_condition("Failed")):
            failed[task] = job_pods(snapshot, name), _CAUSE_BY_JOB_REASON.get(condition.reason)
    state = _with_results(state, done, failed)
    failures = len(state.failures.keys() & set(tasks))
    if spec.max_failed != "" and failures > scaled_value(spec.max_failed, len(tasks), up=True):
        return state, _TOO_MANY_FAILED
    if spec.enough != "" and len(state.done) >= spec.required_tasks:
        return state, FailureCause(SUCCEEDED.code)
    if not unfinished_tasks(state, attempt):
        return state, FailureCause(TASK_FAILED.code if failures else SUCCEEDED.code)
    return state, _DEADLINE if deadline_left_s(snapshot, attempt, per_task=True) == 0 else None


def _with_results(
    state: BatchState, done: Iterable[int], failed: Mapping[int, tuple[Sequence[Pod], FailureCause | None]]
) -> BatchState:
    """Add results. `failed` has the pods of each task, and the cause to use if the pods do not tell one.

    A cause stays as it was first recorded, because the pods are deleted later. Only an unknown one is replaced.
    """
    done = frozenset(done)
    failures = {task: cause for task, cause in state.failures.items() if task not in done}
    for task, (pods, fallback) in failed.items():
        if failures.get(task, _UNKNOWN) == _UNKNOWN:
            cause = find_task_failure(pods)
            failures[task] = fallback if fallback and cause == _UNKNOWN else cause
    return state._replace(done=state.done | done, failures=MappingProxyType(failures))

"""Result of a batch as text: its condition, and the problem to report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pincompute.api.job_set import JobSetSpec, PinterestJobSet
from pincompute.api.job_set_status import AttemptStatus, TaskFailure
from pincompute.api.status import SUCCEEDED, Condition
from pincompute.base import reasons
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import find_reason
from pincompute.objects.number_sets import parse_numbers
from pincompute.objects.quantity import parse_quantity
from pincompute.planning import status
from pincompute.planning.batch import attempts
from pincompute.planning.batch.attempts import BatchState
from pincompute.planning.batch.failures import FailureCause, group_failures
from pincompute.planning.diagnosis.exits import more_memory
from pincompute.planning.pods.pod import DEFAULT_MEMORY
from pincompute.planning.snapshot import Native, Snapshot

_MAX_TASKS_CHARS = 40
"""Characters of a list of tasks that a message shows."""
_MAX_OTHER_GROUPS = 3
"""Groups of failures that a message lists besides the first."""


_REPEATED_BY_A_RERUN = {
    reasons.COMMAND_NOT_FOUND.code: "command",
    reasons.CONFIGURATION_MISSING.code: "the name of the ConfigMap or Secret",
    reasons.RUNS_AS_ROOT.code: "the image",
    reasons.START_FAILED.code: "the container",
}
"""Reasons that only a change of the file or the image resolves, with the field to correct."""


def enough_tasks_done(snapshot: Snapshot, state: BatchState) -> bool:
    spec: JobSetSpec = snapshot.owner.spec
    return len(state.done) >= spec.required_tasks


def wanted_pod_count(snapshot: Snapshot, state: BatchState) -> int:
    """Number of pods that should run."""
    spec: JobSetSpec = snapshot.owner.spec
    if state.running_attempt is None or spec.suspended:
        return 0
    unfinished = len(attempts.unfinished_tasks(state, state.running_attempt))
    return min(unfinished, spec.parallelism or unfinished)


def batch_condition(
    snapshot: Snapshot, state: BatchState, started: int, why: Problem | None, retried: Sequence[FailureCause] = ()
) -> Condition:
    """Condition Succeeded: Unknown until all attempts have ended."""
    spec: JobSetSpec = snapshot.owner.spec
    message = _counts(snapshot, state)
    if state.running_attempt is None:
        done = enough_tasks_done(snapshot, state)
        reason = reasons.SUCCEEDED if done else why.reason if why else reasons.TASK_FAILED
        message = message if done or why is None else f"{message}; {why.message()}"
        return status.build_condition(snapshot, SUCCEEDED, reason, message, status=done)
    if spec.suspended:
        message = f"{message}; suspended by {spec.suspended}"
        return status.build_condition(snapshot, SUCCEEDED, reasons.SUSPENDED, message, status=None)
    message = ", ".join([message, *([f"{started} running"] if started else []), *_retry_text(retried)])
    if why:
        return status.build_condition(snapshot, SUCCEEDED, why.reason, f"{message}; {why.message()}", status=None)
    return status.build_condition(snapshot, SUCCEEDED, reasons.PROGRESSING, message, status=None)


def batch_problem(snapshot: Snapshot, state: BatchState) -> Problem | None:
    """The most frequent failure of tasks; None while enough tasks can still succeed, and after a success."""
    if not state.failures or (state.running_attempt is None and enough_tasks_done(snapshot, state)):
        return None
    if state.running_attempt is not None and _enough_in_reach(snapshot.owner.spec, state):
        return None
    if state.running_attempt is None and state.attempts[-1].reason == reasons.CANCELLED.code:
        return _cancelled_problem(snapshot.owner, state)
    owner, (first, *others) = snapshot.owner, group_failures(state.failures)
    code = f" with exit code {first.exit_code}" if first.exit_code else ""
    return Problem(
        find_reason(first.reason) or reasons.TASK_FAILED,
        f"{first.count} of {owner.spec.task_count} tasks failed{code} ({_tasks_text(first)})",
        Where(object=owner.metadata.key),
        "\n".join(each for each in (first.message, _bound_note(owner, state, first), *_other_groups(others)) if each),
        _remedy(owner, state, first),
    )


def _bound_note(owner: PinterestJobSet, state: BatchState, first: TaskFailure) -> str:
    """The bound of the file that the tasks exceeded."""
    spec = owner.spec
    if first.reason == reasons.OUT_OF_MEMORY.code:
        return f"the limit of a task is {memory_of_tasks(spec, state.attempts, parse_numbers(first.tasks))}"
    if first.reason == reasons.DEADLINE_EXCEEDED.code:
        bounds = (("deadlineSeconds", spec.deadline_seconds), ("taskDeadlineSeconds", spec.task_deadline_seconds))
        return ", ".join(f"{field} is {seconds}" for field, seconds in bounds if seconds)
    return ""


def _remedy(owner: PinterestJobSet, state: BatchState, first: TaskFailure) -> str:
    """The rerun, unless one has failed the same way."""
    numbers = parse_numbers(first.tasks)
    attempts_ = {last_attempt_of_task(state.attempts, each) for each in numbers}
    if first.reason == reasons.TASK_FAILED.code and numbers and 1 not in attempts_:
        return f"pin logs {owner.metadata.name}, then correct the program, and: pin deploy FILE"
    return rerun_command(owner, first.reason, memory_of_tasks(owner.spec, state.attempts, numbers))


def _enough_in_reach(spec: JobSetSpec, state: BatchState) -> bool:
    """True if the file allows tasks to fail, and enough others have not failed."""
    return spec.enough != "" and spec.task_count - len(state.failures) >= spec.required_tasks


def _tasks_text(group: TaskFailure) -> str:
    """The tasks of a group, as many as fit."""
    numbers = group.tasks
    shown = numbers if len(numbers) <= _MAX_TASKS_CHARS else f"{numbers[:_MAX_TASKS_CHARS].rpartition(',')[0]}…"
    return f"{'task' if group.count == 1 else 'tasks'} {shown}"


def _other_groups(groups: Sequence[TaskFailure]) -> list[str]:
    """A line for each further group of failures, as far as a message has room for them."""
    lines = [
        f"{each.count} more: {each.reason}{f', exit code {each.exit_code}' if each.exit_code else ''} "
        f"({_tasks_text(each)}){f': {each.message}' if each.message else ''}"
        for each in groups[:_MAX_OTHER_GROUPS]
    ]
    rest = sum(each.count for each in groups[_MAX_OTHER_GROUPS:])
    return [*lines, f"{rest} more failed in other ways, listed in its status"] if rest else lines


def _cancelled_problem(owner: PinterestJobSet, state: BatchState) -> Problem:
    what = next(each.message for each in group_failures(state.failures) if each.reason == reasons.CANCELLED.code)
    return Problem(reasons.CANCELLED, what, Where(object=owner.metadata.key), next=f"pin rerun {owner.metadata.name}")


def job_cannot_change(snapshot: Snapshot, job: Native) -> Problem:
    return Problem(
        reasons.CANNOT_CHANGE,
        f"{job.metadata.name} was created by another version of PinCompute and continues unchanged",
        Where(object=f"{snapshot.owner.metadata.namespace}/{job.metadata.name}"),
        "its parallelism, deadline and suspension cannot change until it ends",
        f"wait, or recreate it: kubectl delete job {job.metadata.name}",
    )


def _counts(snapshot: Snapshot, state: BatchState) -> str:
    spec: JobSetSpec = snapshot.owner.spec
    cancelled = sum(each.reason == reasons.CANCELLED.code for each in state.failures.values())
    failures = ((len(state.failures) - cancelled, "failed"), (cancelled, "cancelled"))
    failed = "".join(f", {count} {end}" for count, end in failures if count)
    required = f", {spec.required_tasks} required" if spec.required_tasks < spec.task_count else ""
    return f"{len(state.done)} of {spec.task_count} done{failed}{required}"


def _retry_text(retried: Sequence[FailureCause]) -> list[str]:
    """Number of tasks that are retried, with their most frequent cause. It is no problem before the last retry."""
    if not retried:
        return []
    first = group_failures(dict(enumerate(retried)))[0]
    cause = f"{first.reason}, exit {first.exit_code}" if first.exit_code else first.reason
    return [f"{len(retried)} failed and retrying ({cause})"]


def last_attempt_of_task(attempts_: Sequence[AttemptStatus], task: int) -> int:
    """Number of the last attempt that ran a task, to which its failure belongs; 1 if none is recorded."""
    return next((each.number for each in reversed(attempts_) if task in parse_numbers(each.tasks)), 1)


def memory_of_attempt(spec: JobSetSpec, number: int) -> str:
    """Memory of each task in an attempt. A rerun without an amount of its own takes that of the file."""
    reruns = spec.attempts[number - 2 : number - 1] if number > 1 else []
    return str(next((each.memory for each in reruns if each.memory), spec.memory or DEFAULT_MEMORY))


def memory_of_tasks(spec: JobSetSpec, attempts_: Sequence[AttemptStatus], failed: Iterable[int]) -> str:
    """Largest amount of memory with which one of these tasks last failed."""
    numbers = {last_attempt_of_task(attempts_, task) for task in failed} or {1}
    return max((memory_of_attempt(spec, each) for each in sorted(numbers)), key=parse_quantity)


def rerun_command(owner: PinterestJobSet, reason: str, memory: str) -> str:
    """Command that reruns tasks with this failure, which had `memory`.

    What is wrong in the file has to be corrected instead: a rerun would fail the same way.
    """
    name = owner.metadata.name
    if reason in _REPEATED_BY_A_RERUN:
        return f"correct {_REPEATED_BY_A_RERUN[reason]} in the file, and: pin deploy FILE"
    if reason == reasons.OUT_OF_MEMORY.code:
        return f"pin rerun {name} --reason {reason} --memory {more_memory(memory)}"
    return f"pin rerun {name}"

"""Causes of failed tasks: read from their pods while these exist, and from the status afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pincompute.api.job_set_status import TaskFailure
from pincompute.base.reasons import CANCELLED, DEADLINE_EXCEEDED, OUT_OF_MEMORY, TASK_FAILED, TOO_MANY_FAILED
from pincompute.objects.number_sets import format_numbers, parse_numbers
from pincompute.planning.diagnosis.container_start import NEVER_STARTED_REASONS, is_exec_error, start_failure_problem
from pincompute.planning.diagnosis.excerpts import excerpt_start, last_line
from pincompute.planning.diagnosis.nodes import reason_of_node
from pincompute.planning.observed_pods import ContainerStatus, Pod

MAX_FAILURE_GROUPS = 32
"""Groups of failures that a status lists; all others are in one more group."""
_MAX_MESSAGE_CHARS = 256
_NOT_FAILED_ITSELF = frozenset({TOO_MANY_FAILED.code, CANCELLED.code})
"""Reasons of tasks that were ended, though nothing was wrong with them."""


class FailureCause(NamedTuple):
    """Cause of failure of one task."""

    reason: str = TASK_FAILED.code
    exit_code: int = 0
    message: str = ""


def find_task_failure(pods: Iterable[Pod]) -> FailureCause:
    """Read the cause from the last failed pod of a task; the default cause if there is none."""
    failed = [pod for pod in pods if pod.status.phase == "Failed"]
    last = max(failed, key=lambda pod: (_finished_at(pod), pod.metadata.name), default=None)
    if last is None:
        return FailureCause()
    if last.status.reason == "DeadlineExceeded":
        return FailureCause(DEADLINE_EXCEEDED.code, message="the task exceeded taskDeadlineSeconds")
    for container in _all_containers(last):
        terminated = container.state.terminated
        if last.status.reason:
            # The node ended the whole pod; the exit codes of its containers only follow from that.
            break
        if terminated and (terminated.reason in NEVER_STARTED_REASONS or is_exec_error(terminated.message)):
            problem = start_failure_problem(container, terminated.message)
            return FailureCause(problem.reason.code, message=problem.what[:_MAX_MESSAGE_CHARS])
        if terminated and terminated.exit_code:
            reason = OUT_OF_MEMORY if terminated.reason == "OOMKilled" else TASK_FAILED
            message = last_line(terminated.message)[:_MAX_MESSAGE_CHARS]
            return FailureCause(reason.code, terminated.exit_code, message)
    message = ": ".join(each for each in (last.status.reason, excerpt_start(last.status.message)) if each)
    return FailureCause(reason_of_node(last, TASK_FAILED).code, message=message[:_MAX_MESSAGE_CHARS])


def recorded_failures(failures: Iterable[TaskFailure]) -> dict[int, FailureCause]:
    """Causes by task, from a status."""
    return {
        task: FailureCause(each.reason, each.exit_code, each.message)
        for each in failures
        for task in sorted(parse_numbers(each.tasks))
    }


def group_failures(causes: Mapping[int, FailureCause]) -> list[TaskFailure]:
    """Group tasks by reason and exit code, the most frequent group first.

    Tasks that were cancelled, or ended because others failed, come last. The message is that of a group's first task.
    """
    if len(_sorted_groups(causes)) > MAX_FAILURE_GROUPS:
        rare = [task for _, tasks in _sorted_groups(causes)[MAX_FAILURE_GROUPS - 1 :] for task in tasks]
        causes = {**causes, **dict.fromkeys(rare, FailureCause(message="in many other ways"))}
    return [
        TaskFailure(
            reason=reason,
            exit_code=exit_code,
            message=causes[tasks[0]].message,
            tasks=format_numbers(tasks),
            count=len(tasks),
        )
        for (reason, exit_code), tasks in _sorted_groups(causes)
    ]


def _sorted_groups(causes: Mapping[int, FailureCause]) -> list[tuple[tuple[str, int], list[int]]]:
    groups: dict[tuple[str, int], list[int]] = {}
    for task in sorted(causes):
        groups.setdefault((causes[task].reason, causes[task].exit_code), []).append(task)
    return sorted(groups.items(), key=lambda group: (group[0][0] in _NOT_FAILED_ITSELF, -len(group[1]), group[0]))


def _all_containers(pod: Pod) -> list[ContainerStatus]:
    return [*pod.status.container_statuses, *pod.status.init_container_statuses]


def _finished_at(pod: Pod) -> str:
    times = [each.state.terminated.finished_at for each in _all_containers(pod) if each.state.terminated]
    return max(times, default="")

"""Why tasks failed: read from their pods while there are any, and remembered after that."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pincompute.api.job_set_status import Failure
from pincompute.base.reasons import DEADLINE_EXCEEDED, OUT_OF_MEMORY, TASK_FAILED, TOO_MANY_FAILED
from pincompute.objects.numbers import parse, spell
from pincompute.planning.snapshot import Container, Pod
from pincompute.planning.why.starts import NEVER_STARTED, not_begun
from pincompute.planning.why.words import last_line

MOST_WAYS = 32
"""Ways to fail that a status lists; the rest are told as one."""
_LONGEST = 256


class Cause(NamedTuple):
    """How one task failed."""

    reason: str = TASK_FAILED.code
    exit_code: int = 0
    message: str = ""


def cause(pods: Iterable[Pod]) -> Cause:
    """What the last pod of a task says; nothing is known where it is gone."""
    failed = [pod for pod in pods if pod.status.phase == "Failed"]
    last = max(failed, key=lambda pod: (_finished(pod), pod.metadata.name), default=None)
    if last is None:
        return Cause()
    if last.status.reason == "DeadlineExceeded":
        return Cause(DEADLINE_EXCEEDED.code, message="the task took longer than taskDeadlineSeconds")
    for each in _containers(last):
        ended = each.state.terminated
        if ended and ended.reason in NEVER_STARTED:
            told = not_begun(each, ended.message)
            return Cause(told.reason.code, message=told.what[:_LONGEST])
        if ended and ended.exit_code:
            reason = OUT_OF_MEMORY if ended.reason == "OOMKilled" else TASK_FAILED
            return Cause(reason.code, ended.exit_code, last_line(ended.message)[:_LONGEST])
    return Cause(message=last.status.reason[:_LONGEST])


def remembered(failures: Iterable[Failure]) -> dict[int, Cause]:
    """By task."""
    return {
        task: Cause(each.reason, each.exit_code, each.message)
        for each in failures
        for task in sorted(parse(each.tasks))
    }


def grouped(causes: dict[int, Cause]) -> list[Failure]:
    """By reason and exit code, the most frequent first, and last what only follows from the others.

    The line is that of the first task of each.
    """
    told = causes
    if len(_ways(told)) > MOST_WAYS:
        rare = [task for _, tasks in _ways(told)[MOST_WAYS - 1 :] for task in tasks]
        told = {**causes, **dict.fromkeys(rare, Cause(message="in many other ways"))}
    ways = _ways(told)
    return [_failure(Cause(*way, told[tasks[0]].message), tasks) for way, tasks in ways]


def _ways(causes: dict[int, Cause]) -> list[tuple[tuple[str, int], list[int]]]:
    ways: dict[tuple[str, int], list[int]] = {}
    for task in sorted(causes):
        ways.setdefault((causes[task].reason, causes[task].exit_code), []).append(task)
    return sorted(ways.items(), key=lambda way: (way[0][0] == TOO_MANY_FAILED.code, -len(way[1]), way[0]))


def _failure(way: Cause, tasks: list[int]) -> Failure:
    return Failure(
        reason=way.reason, exit_code=way.exit_code, message=way.message, tasks=spell(tasks), count=len(tasks)
    )


def _containers(pod: Pod) -> list[Container]:
    return [*pod.status.container_statuses, *pod.status.init_container_statuses]


def _finished(pod: Pod) -> str:
    ends = [each.state.terminated.finished_at for each in _containers(pod) if each.state.terminated]
    return max(ends, default="")

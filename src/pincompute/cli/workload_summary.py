"""Formats a workload in a few lines: progress, address, failures, and the next step."""

from __future__ import annotations

from datetime import datetime

import msgspec

from pincompute.api.cron_job import PinterestCronJob
from pincompute.api.daemon import PinterestDaemon
from pincompute.api.job_set import PinterestJobSet
from pincompute.api.job_set_status import TaskFailure
from pincompute.api.status import EXPIRED, EXPIRES_SOON, HOST_UNLISTED, UNREVIEWED, Condition, find_condition
from pincompute.api.training_job import PinterestTrainingJob
from pincompute.api.workload import Workload
from pincompute.api.workload_summary import WorkloadSummary
from pincompute.base.reasons import CANCELLED, OUT_OF_MEMORY, PROGRESSING, find_reason
from pincompute.cli.durations import elapsed_s, format_age, format_duration
from pincompute.cli.table import format_table
from pincompute.objects.number_sets import format_numbers, parse_numbers
from pincompute.planning.batch.outcome import (
    last_attempt_of_task,
    memory_of_attempt,
    memory_of_tasks,
    rerun_command,
)
from pincompute.planning.views.summary import summarize

_MAX_TASK_LIST_LENGTH = 40


def format_workload(workload: Workload, now: datetime) -> str:
    lines = [
        _headline(workload, now),
        *_properties(workload, now),
        *_goal_problem(workload),
        *_notices(workload),
    ]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def unfinished_tasks(workload: PinterestJobSet) -> frozenset[int]:
    return frozenset(range(workload.status.tasks)) - parse_numbers(workload.status.completed)


def shorten_task_list(tasks: str) -> str:
    """Write `12,470` as `12 470`, and cut a long list between two numbers."""
    words = tasks.replace(",", " ")
    if len(words) <= _MAX_TASK_LIST_LENGTH:
        return words
    return f"{words[:_MAX_TASK_LIST_LENGTH].rpartition(' ')[0]} …"


def _headline(workload: Workload, now: datetime) -> str:
    summary = summarize(workload)
    label = summary.label
    if isinstance(workload, PinterestJobSet):
        return f"{label}  {_task_counts(workload)}   {_elapsed_of_attempts(workload, now)}"
    goal = find_condition(workload.status.conditions, workload.GOAL)
    progress = goal.message if goal and goal.status == "True" else _unreached_goal(workload, summary)
    return f"{label}  {progress}   {format_age(workload.metadata.creation_timestamp, now)}"


def _unreached_goal(workload: Workload, summary: WorkloadSummary) -> str:
    plural = workload.REPLICA_NOUN[1]
    if summary.former_serves:
        return f"{summary.ready} of {summary.wanted} {plural} ready ({summary.progress.ready} new)"
    ended = isinstance(workload, PinterestTrainingJob) and workload.status.ended
    return f"{summary.ready} of {summary.wanted} {plural} {'succeeded' if ended else 'so far'}"


def _task_counts(workload: PinterestJobSet) -> str:
    status = workload.status
    cancelled = sum(each.count for each in status.failures if each.reason == CANCELLED.code)
    failed = status.failed - cancelled
    counts = ((status.done, "done"), (failed, "failed"), (cancelled, "cancelled"), (status.running, "running"))
    parts = [f"{count} {state}" for count, state in counts if count or state == "done"]
    parts += [f"{status.retrying} retrying"] if status.retrying else []
    return f"{'  '.join(parts)}  of {status.tasks or workload.spec.task_count}"


def _elapsed_of_attempts(workload: PinterestJobSet, now: datetime) -> str:
    """Durations of all attempts together, without the time between them in which no task ran."""
    attempts = [each for each in workload.status.attempts if each.began]
    if not attempts:
        return ""
    return format_duration(sum(elapsed_s(each.began, each.ended or now.isoformat()) for each in attempts))


def _properties(workload: Workload, now: datetime) -> list[str]:
    if isinstance(workload, PinterestJobSet):
        return _failure_lines(workload)
    rows = [("address", workload.status.address), ("image", workload.spec.image)]
    if isinstance(workload, PinterestCronJob):
        rows += _schedule_rows(workload, now)
    rows += [
        ("pinned", _pin(workload)),
        ("runtime", _runtime(workload)),
        ("simulated", "no program runs" if workload.status.simulated else ""),
    ]
    return [f"  {name:<11}{value}" for name, value in rows if value]


def _schedule_rows(workload: PinterestCronJob, now: datetime) -> list[tuple[str, str]]:
    status, spec = workload.status, workload.spec
    last = status.last_run
    last_run = f"{last.outcome} {format_age(last.ended, now)} ago, {last.name}" if last else ""
    return [
        ("schedule", f"{spec.schedule}, {spec.time_zone}"),
        ("running", " ".join(status.running)),
        ("last run", last_run),
        ("next run", status.next_runs[0] if status.next_runs else ""),
    ]


def _pin(workload: Workload) -> str:
    """The revision of a daemon that a runtime pins, beside that of its file in the headline."""
    if not isinstance(workload, PinterestDaemon) or not workload.status.pinned_by:
        return ""
    return f"@{workload.status.pinned_revision} by runtime {workload.status.pinned_by}"


def _runtime(workload: Workload) -> str:
    status = workload.status
    return f"{status.runtime} ({' '.join(status.parts)})" if status.runtime else ""


def _failure_lines(workload: PinterestJobSet) -> list[str]:
    rows = [
        (
            f"  {each.count}",
            _failure_cause(workload, each, attempt),
            f"tasks {shorten_task_list(each.tasks)}{_attempt_text(workload, attempt)}",
            f"next: {_failure_remedy(workload, each)}",
        )
        for failure in workload.status.failures
        for attempt, each in _failures_by_attempt(workload, failure)
    ]
    return format_table(rows, text_columns=4).splitlines() if rows else []


def _failures_by_attempt(workload: PinterestJobSet, failure: TaskFailure) -> list[tuple[int, TaskFailure]]:
    """Split a failure by the attempt in which its tasks last failed, the latest attempt first."""
    tasks_by_attempt: dict[int, list[int]] = {}
    for task in sorted(parse_numbers(failure.tasks)):
        tasks_by_attempt.setdefault(last_attempt_of_task(workload.status.attempts, task), []).append(task)
    if len(tasks_by_attempt) < 2:
        return [(next(iter(tasks_by_attempt), 1), failure)]
    return [
        (number, msgspec.structs.replace(failure, tasks=format_numbers(tasks), count=len(tasks)))
        for number, tasks in sorted(tasks_by_attempt.items(), reverse=True)
    ]


def _attempt_text(workload: PinterestJobSet, attempt: int) -> str:
    return f", attempt {attempt}" if len(workload.status.attempts) > 1 else ""


def _failure_cause(workload: PinterestJobSet, failure: TaskFailure, attempt: int) -> str:
    if failure.reason == OUT_OF_MEMORY.code:
        return f"{failure.reason} {memory_of_attempt(workload.spec, attempt)}"
    if failure.exit_code:
        message = f' "{failure.message}"' if failure.message else ""
        return f"exit {failure.exit_code}{message}"
    if failure.reason == CANCELLED.code:
        return failure.message
    return f"{failure.reason}{f': {failure.message}' if failure.message else ''}"


def _failure_remedy(workload: PinterestJobSet, failure: TaskFailure) -> str:
    if failure.reason in {OUT_OF_MEMORY.code, CANCELLED.code} or not failure.tasks:
        tasks = parse_numbers(failure.tasks)
        memory = memory_of_tasks(workload.spec, workload.status.attempts, tasks)
        return rerun_command(workload, failure.reason, memory)
    return f"pin logs {workload.metadata.name}/{min(parse_numbers(failure.tasks))}"


def _goal_problem(workload: Workload) -> list[str]:
    """Return the problem that keeps the workload from its goal, unless the failures already show it."""
    goal = find_condition(workload.status.conditions, workload.GOAL)
    failures = workload.status.failures if isinstance(workload, PinterestJobSet) else []
    already_shown = any(each.reason == goal.reason for each in failures) if goal else False
    if goal is None or goal.status == "True" or goal.reason == PROGRESSING.code or already_shown:
        return []
    return [f"  {goal.message}  [{goal.reason}]", *_next_step(workload, goal)]


def _notices(workload: Workload) -> list[str]:
    goal = find_condition(workload.status.conditions, workload.GOAL)
    types = (UNREVIEWED, HOST_UNLISTED, EXPIRES_SOON, EXPIRED)
    found = [find_condition(workload.status.conditions, each) for each in types]
    shown = goal.message if goal else ""
    return [f"  {each.message}  [{each.reason}]" for each in found if each and each.message != shown]


def _next_step(workload: Workload, goal: Condition) -> list[str]:
    reason = find_reason(goal.reason)
    next_ = workload.status.next or (reason.remedy if reason else "")
    return [f"  next: {next_}"] if next_ else []

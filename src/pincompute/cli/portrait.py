"""One workload in a few lines: how far it is, where it answers, what failed in which way, and what to type next."""

from __future__ import annotations

from datetime import datetime

from pincompute.api.cron_job import PinterestCronJob
from pincompute.api.job_set import PinterestJobSet
from pincompute.api.job_set_status import Failure
from pincompute.api.status import UNREVIEWED, Condition, condition
from pincompute.api.workload import Workload
from pincompute.base.reasons import OUT_OF_MEMORY, PROGRESSING, REASONS
from pincompute.cli.ages import age, lasted
from pincompute.cli.table import table
from pincompute.objects.numbers import parse
from pincompute.planning.batch.outcome import memory_of, rerun_of
from pincompute.planning.people.summary import summarize

_SHOWN = 40
"""Letters of a list of tasks."""


def portrait(workload: Workload, now: datetime) -> str:
    lines = [_first(workload, now), *_body(workload, now), *_trouble(workload), *_unreviewed(workload)]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def left(workload: PinterestJobSet) -> frozenset[int]:
    """Tasks that are not done."""
    return frozenset(range(workload.status.tasks)) - parse(workload.status.completed)


def tasks_of(spelled: str) -> str:
    """`12 470`, cut where there are many."""
    words = spelled.replace(",", " ")
    return words if len(words) <= _SHOWN else f"{words[:_SHOWN].rpartition(' ')[0]} …"


def _first(workload: Workload, now: datetime) -> str:
    label = summarize(workload).label
    if isinstance(workload, PinterestJobSet):
        return f"{label}  {_counts(workload)}   {_taken(workload, now)}"
    goal = condition(workload.status.conditions, workload.GOAL)
    ready, wanted = workload.counted
    said = goal.message if goal and goal.status == "True" else f"{ready} of {wanted} {workload.COPY[1]} so far"
    return f"{label}  {said}   {age(workload.metadata.creation_timestamp, now)}"


def _counts(workload: PinterestJobSet) -> str:
    status = workload.status
    told = ((status.done, "done"), (status.failed, "failed"), (status.running, "running"))
    words = [f"{count} {word}" for count, word in told if count or word == "done"]
    words += [f"{status.retrying} tried again"] if status.retrying else []
    return f"{'  '.join(words)}  of {status.tasks or workload.spec.count}"


def _taken(workload: PinterestJobSet, now: datetime) -> str:
    attempts = workload.status.attempts
    if not attempts:
        return ""
    last = attempts[-1]
    return lasted(last.began, last.ended) if last.ended else age(last.began, now)


def _body(workload: Workload, now: datetime) -> list[str]:
    if isinstance(workload, PinterestJobSet):
        return _failures(workload)
    rows = [("address", workload.status.address), ("image", workload.spec.image)]
    if isinstance(workload, PinterestCronJob):
        rows += _runs(workload, now)
    rows += [("runtime", _runtime(workload)), ("simulated", "no program runs" if workload.status.simulated else "")]
    return [f"  {name:<11}{said}" for name, said in rows if said]


def _runs(workload: PinterestCronJob, now: datetime) -> list[tuple[str, str]]:
    status, spec = workload.status, workload.spec
    last = status.last_run
    ran = f"{last.outcome} {age(last.ended, now)} ago, {last.name}" if last else ""
    return [
        ("schedule", f"{spec.schedule}, {spec.time_zone}"),
        ("running", " ".join(status.running)),
        ("last run", ran),
        ("next run", status.next_runs[0] if status.next_runs else ""),
    ]


def _runtime(workload: Workload) -> str:
    status = workload.status
    return f"{status.runtime} ({' '.join(status.parts)})" if status.runtime else ""


def _failures(workload: PinterestJobSet) -> list[str]:
    rows = [
        (f"  {each.count}", _way(workload, each), f"tasks {tasks_of(each.tasks)}", f"next: {_next(workload, each)}")
        for each in workload.status.failures
    ]
    return table(rows, left=4).splitlines() if rows else []


def _way(workload: PinterestJobSet, failure: Failure) -> str:
    if failure.reason == OUT_OF_MEMORY.code:
        return f"{failure.reason} {memory_of(workload.spec)}"
    if failure.exit_code:
        said = f' "{failure.message}"' if failure.message else ""
        return f"exit {failure.exit_code}{said}"
    return f"{failure.reason}{f': {failure.message}' if failure.message else ''}"


def _next(workload: PinterestJobSet, failure: Failure) -> str:
    name = workload.metadata.name
    if failure.reason == OUT_OF_MEMORY.code:
        return rerun_of(workload, failure.reason)
    return f"pin logs {name}/{min(parse(failure.tasks))}" if failure.tasks else rerun_of(workload, failure.reason)


def _trouble(workload: Workload) -> list[str]:
    """What is not told by the rest."""
    goal = condition(workload.status.conditions, workload.GOAL)
    failures = workload.status.failures if isinstance(workload, PinterestJobSet) else []
    told_above = any(each.reason == goal.reason for each in failures) if goal else False
    if goal is None or goal.status == "True" or goal.reason == PROGRESSING.code or told_above:
        return []
    return [f"  {goal.message}  [{goal.reason}]", *_mend(workload, goal)]


def _unreviewed(workload: Workload) -> list[str]:
    found = condition(workload.status.conditions, UNREVIEWED)
    return [f"  {found.message}  [{found.reason}]"] if found else []


def _mend(workload: Workload, goal: Condition) -> list[str]:
    next_ = workload.status.next or (REASONS[goal.reason].mend if goal.reason in REASONS else "")
    return [f"  next: {next_}"] if next_ else []

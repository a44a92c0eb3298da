"""How far the attempts at a batch have come: what was remembered, and what is seen now, as one.

An attempt that has ended is never looked at again, so that it may be removed; one that has begun keeps its tasks.
What a crash kept from being remembered stands on the Jobs themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from pincompute.api.job_set import JobSetSpec
from pincompute.api.job_set_status import AttemptStatus, JobSetStatus
from pincompute.api.names import ATTEMPT, REVISION, RUNTIME, TASKS, WORK
from pincompute.api.task import FAILED, Attempt
from pincompute.api.wire import spoken
from pincompute.base.reasons import DEADLINE_EXCEEDED, SUCCEEDED, TASK_FAILED, TOO_MANY_FAILED
from pincompute.objects.content import digest
from pincompute.objects.numbers import parse, share_of, spell
from pincompute.objects.times import stamp
from pincompute.planning import names
from pincompute.planning.batch.failures import Cause, cause, remembered
from pincompute.planning.snapshot import Native, Pod, Snapshot

PACE = frozenset(
    {
        "parallelism", "suspended", "deadlineSeconds", "maxFailed", "keepSeconds", "attempts", "owner", "hold", "build",
        "breakGlass",
    }
)  # fmt: skip
"""What may change while it runs: none of it is in what the tasks do."""
_JOB_NAME = "batch.kubernetes.io/job-name"
_JOB_INDEX = "batch.kubernetes.io/job-completion-index"
_ENDED_BY = {
    "DeadlineExceeded": Cause(DEADLINE_EXCEEDED.code, message="it was not done when the time of its attempt was over"),
    "MaxFailedIndexesExceeded": Cause(TOO_MANY_FAILED.code, message="it was ended because too many others had failed"),
}


class Course(NamedTuple):
    """All that is known of the work of one revision."""

    revision: int
    work: str
    attempts: list[AttemptStatus]
    done: set[int]
    failures: dict[int, Cause]

    @property
    def running(self) -> AttemptStatus | None:
        return self.attempts[-1] if self.attempts and not self.attempts[-1].ended else None


def course(snapshot: Snapshot) -> Course:
    """The attempts one after the other, as far as they have come."""
    found = _memory(snapshot)
    asked: list[Attempt | None] = [None, *snapshot.owner.spec.attempts]
    del found.attempts[len(asked) :]
    for number, attempt in enumerate(asked, 1):
        if number > len(found.attempts):
            _begin(snapshot, found, number, attempt)
        if not found.attempts[number - 1].ended:
            _look(snapshot, found)
        if not found.attempts[number - 1].ended:
            return found
    if len(found.done) < snapshot.owner.spec.needed:
        # An attempt that was taken out of the file leaves tasks behind.
        left_behind = set(range(snapshot.owner.spec.count)) - found.done - found.failures.keys()
        found.failures.update(dict.fromkeys(sorted(left_behind), Cause(message="no attempt finished it")))
    return found


def work(spec: JobSetSpec) -> str:
    """Another digest is another revision, whose work starts anew."""
    return digest({name: value for name, value in spoken(spec).items() if name not in PACE})


def jobs(snapshot: Snapshot, found: Course, number: int = 0) -> dict[str, Native]:
    """Those of this revision, or of one attempt of it, by name."""
    return {
        each.metadata.name: each
        for each in snapshot.natives
        if each.kind == "Job"
        and each.metadata.controller == snapshot.owner.metadata.uid
        and each.metadata.annotations.get(WORK) == found.work
        and each.metadata.annotations.get(REVISION) == str(found.revision)
        and number in {0, _number(each, ATTEMPT)}
    }


def pods(snapshot: Snapshot, job: str) -> tuple[Pod, ...]:
    return tuple(pod for pod in snapshot.pods if pod.metadata.labels.get(_JOB_NAME) == job)


def living(snapshot: Snapshot, names_of_jobs: list[str]) -> tuple[Pod, ...]:
    found = (pod for name in names_of_jobs for pod in pods(snapshot, name) if pod.lives)
    return tuple(sorted(found, key=lambda pod: pod.metadata.name))


def retried(places: Iterable[Sequence[Pod]]) -> list[Cause]:
    """Of places in which something has failed, and may yet succeed: how the last one failed."""
    return [
        cause(tried)
        for tried in places
        if any(pod.status.phase == "Failed" for pod in tried)
        and not any(pod.status.phase == "Succeeded" for pod in tried)
    ]


def places(snapshot: Snapshot, seen: Mapping[str, Native]) -> list[list[Pod]]:
    """The pods of each place that is neither done nor given up."""
    found: dict[tuple[str, str], list[Pod]] = {}
    for name in sorted(each for each in seen if not finished(seen[each])):
        status = seen[name].status
        over = {str(place) for place in parse(status.completed_indexes) | parse(status.failed_indexes)}
        for pod in pods(snapshot, name):
            if _place(pod)[1] not in over:
                found.setdefault(_place(pod), []).append(pod)
    return [*found.values()]


def _place(pod: Pod) -> tuple[str, str]:
    labels = pod.metadata.labels
    return labels.get(_JOB_NAME, ""), labels.get(_JOB_INDEX, "")


def begun(snapshot: Snapshot, found: Course, record: AttemptStatus) -> bool:
    """Remembered, or seen: it goes on with the runtime that it has."""
    status: JobSetStatus = snapshot.owner.status
    known = status.work == found.work and any(each.number == record.number for each in status.attempts)
    return known or bool(jobs(snapshot, found, record.number))


def turn(snapshot: Snapshot, found: Course, record: AttemptStatus) -> list[int]:
    """The tasks whose own Jobs run, and those whose turn has come, as many as may run side by side."""
    spec: JobSetSpec = snapshot.owner.spec
    seen = jobs(snapshot, found, record.number)
    waiting = unfinished(found, record)
    runs = [task for task in waiting if names.task_job(snapshot.owner, found.revision, record.number, task) in seen]
    room = max(0, (spec.parallelism or len(waiting)) - len(runs))
    others = [task for task in waiting if task not in runs]
    return sorted([*runs, *others[:room]])


def finished(job: Native) -> bool:
    return bool(job.says("Complete") or job.says("Failed"))


def unfinished(found: Course, record: AttemptStatus) -> list[int]:
    return sorted(parse(record.tasks) - found.done - found.failures.keys())


def _number(job: Native, annotation: str) -> int:
    said = job.metadata.annotations.get(annotation, "")
    return int(said) if said.isdigit() else 0


def _memory(snapshot: Snapshot) -> Course:
    status: JobSetStatus = snapshot.owner.status
    digest_now = work(snapshot.owner.spec)
    if status.work == digest_now:
        done, failures = set(parse(status.completed)), remembered(status.failures)
        return Course(status.revision, digest_now, list(status.attempts), done, failures)
    return Course(_revision(snapshot, digest_now), digest_now, [], set(), {})


def _revision(snapshot: Snapshot, digest_now: str) -> int:
    """That of a Job which was made before a crash, or else a new one."""
    begun = [
        _number(each, REVISION)
        for each in snapshot.natives
        if each.kind == "Job"
        and each.metadata.controller == snapshot.owner.metadata.uid
        and each.metadata.annotations.get(WORK) == digest_now
    ]
    return max(
        [each for each in begun if each > snapshot.owner.status.revision], default=snapshot.owner.metadata.generation
    )


def _begin(snapshot: Snapshot, found: Course, number: int, attempt: Attempt | None) -> None:
    """With the tasks that its Job has, where there is one; what they came to before no longer counts."""
    seen = next(iter(jobs(snapshot, found, number).values()), None)
    said = seen.metadata.annotations if seen else {}
    tasks = parse(said[TASKS]) if TASKS in said else _chosen(snapshot.owner.spec, found, attempt)
    found.done.difference_update(tasks)
    for task in tasks & found.failures.keys():
        del found.failures[task]
    now = stamp(snapshot.now)
    record = AttemptStatus(number=number, tasks=spell(tasks), began=now, runtime=int(said.get(RUNTIME, "0")))
    found.attempts.append(record if tasks else msgspec.structs.replace(record, ended=now, reason=SUCCEEDED.code))


def _chosen(spec: JobSetSpec, found: Course, attempt: Attempt | None) -> frozenset[int]:
    if attempt is None:
        return frozenset(range(spec.count))
    if attempt.tasks == FAILED:
        return frozenset(task for task, each in found.failures.items() if attempt.reason in {"Any", each.reason})
    return parse(attempt.tasks)


def _look(snapshot: Snapshot, found: Course) -> None:
    """What has come of the attempt that runs."""
    record = found.attempts[-1]
    look = _look_apart if snapshot.owner.spec.retained else _look_together
    ended = look(snapshot, found, record)
    tasks = parse(record.tasks)
    if ended is not None and ended.reason != SUCCEEDED.code:
        found.failures.update(dict.fromkeys(unfinished(found, record), ended))
    found.attempts[-1] = msgspec.structs.replace(
        record,
        done=len(tasks & found.done),
        failed=len(tasks & found.failures.keys()),
        ended=stamp(snapshot.now) if ended else "",
        reason=ended.reason if ended else "",
    )


def _look_together(snapshot: Snapshot, found: Course, record: AttemptStatus) -> Cause | None:
    """At the one indexed Job; what else can be said of a task that is not finished when it has ended."""
    name = names.job(snapshot.owner, found.revision, record.number)
    job = jobs(snapshot, found, record.number).get(name)
    if job is None:
        return None
    tasks = sorted(parse(record.tasks))
    _succeed(found, list(_at(tasks, job.status.completed_indexes).values()))
    by_place: dict[str, list[Pod]] = {}
    for pod in pods(snapshot, name):
        by_place.setdefault(pod.metadata.labels.get(_JOB_INDEX, ""), []).append(pod)
    for place, task in _at(tasks, job.status.failed_indexes).items():
        _fail(found, task, by_place.get(str(place), []))
    if job.says("Complete"):
        return Cause(SUCCEEDED.code)
    failed = job.says("Failed")
    return _ENDED_BY.get(failed.reason, Cause(message=failed.message[:256])) if failed else None


def _at(tasks: list[int], places: str) -> dict[int, int]:
    """The task of each place; of places that the attempt does not have, nothing."""
    return {place: tasks[place] for place in sorted(parse(places)) if place < len(tasks)}


def _look_apart(snapshot: Snapshot, found: Course, record: AttemptStatus) -> Cause | None:
    """At a Job for each task; that it is enough, too much or too late is for us to see."""
    spec: JobSetSpec = snapshot.owner.spec
    seen = jobs(snapshot, found, record.number)
    tasks = sorted(parse(record.tasks))
    for task in tasks:
        name = names.task_job(snapshot.owner, found.revision, record.number, task)
        job = seen.get(name)
        if job and job.says("Complete"):
            _succeed(found, [task])
        elif job and (failed := job.says("Failed")):
            _fail(found, task, pods(snapshot, name), _ENDED_BY.get(failed.reason))
    failures = len(found.failures.keys() & set(tasks))
    if spec.max_failed != "" and failures > share_of(spec.max_failed, len(tasks), up=True):
        return _ENDED_BY["MaxFailedIndexesExceeded"]
    if spec.enough != "" and len(found.done) >= spec.needed:
        return Cause(SUCCEEDED.code)
    if not unfinished(found, record):
        return Cause(TASK_FAILED.code if failures else SUCCEEDED.code)
    return _ENDED_BY["DeadlineExceeded"] if left(snapshot, record) == 0 else None


def left(snapshot: Snapshot, record: AttemptStatus) -> float | None:
    """Seconds until the deadline of an attempt that we end ourselves."""
    spec: JobSetSpec = snapshot.owner.spec
    if not spec.retained or not spec.deadline_seconds or spec.suspended:
        return None
    taken = (snapshot.now - datetime.fromisoformat(record.began)).total_seconds()
    return max(0.0, spec.deadline_seconds - taken)


def _succeed(found: Course, tasks: list[int]) -> None:
    found.done.update(tasks)
    for task in tasks:
        found.failures.pop(task, None)


def _fail(found: Course, task: int, seen: list[Pod] | tuple[Pod, ...], otherwise: Cause | None = None) -> None:
    """Remembered as it was first seen; what is known by nobody may still become known."""
    if found.failures.get(task, Cause()) == Cause():
        told = cause(seen)
        found.failures[task] = otherwise if otherwise and told == Cause() else told

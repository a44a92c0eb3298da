"""Runs of a cron job: Jobs that Kubernetes creates on schedule, and those that were requested manually."""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

import msgspec

from pincompute.api.cron_job import OUTCOME_FAILED, OUTCOME_SUCCEEDED, CronJobRun, CronJobStatus, PinterestCronJob
from pincompute.api.names import REVISION_ANNOTATION, RUN_NOW_ANNOTATION
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import DEADLINE_EXCEEDED, DOCUMENT_INVALID, RUN_FAILED, find_reason
from pincompute.objects.times import format_time
from pincompute.planning import names
from pincompute.planning.batch import retrying
from pincompute.planning.diagnosis import Finding, first_cause
from pincompute.planning.diagnosis.excerpts import excerpt_start, join_first_few
from pincompute.planning.edit_commands import edit_command
from pincompute.planning.observed_pods import Pod
from pincompute.planning.revision_number import present_revision
from pincompute.planning.snapshot import Native, Snapshot

MAX_MANUAL_RUN_NUMBER = 999_999
"""A higher number would make the name of its Job too long."""
_SCHEDULED_TIME_ANNOTATION = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_DEADLINE_EXCEEDED = "DeadlineExceeded"


class CronRuns(NamedTuple):
    """Jobs of a cron job, the oldest first."""

    active: tuple[Native, ...]
    finished: tuple[Native, ...]


def find_runs(snapshot: Snapshot) -> CronRuns:
    jobs = [each for each in snapshot.natives if each.kind == "Job" and _is_run(snapshot.owner, each)]
    ordered = sorted(jobs, key=lambda each: (each.metadata.creation_timestamp, each.metadata.name))
    finished = tuple(each for each in ordered if _outcome(each))
    return CronRuns(tuple(each for each in ordered if each not in finished), finished)


def _is_run(owner: PinterestCronJob, job: Native) -> bool:
    """True for Jobs that the workload controls, or its CronJob: on schedule, or by `kubectl create job --from`."""
    controllers = ((each.kind, each.name) for each in job.metadata.owner_references if each.controller)
    of_cron_job = next(controllers, None) == ("CronJob", owner.metadata.name)
    return of_cron_job or job.metadata.controller_uid == owner.metadata.uid


def last_finished_run(snapshot: Snapshot, runs: CronRuns) -> CronJobRun | None:
    """Last run that has ended: from its Job, or from the status after the Job was deleted."""
    before: CronJobRun | None = snapshot.owner.status.last_run
    if not runs.finished:
        return before
    newest = max(runs.finished, key=lambda each: (_ended_at(each), each.metadata.name))
    if before and before.ended > _ended_at(newest):
        return before
    run = _run_of(newest)
    if run.outcome == OUTCOME_SUCCEEDED:
        return run
    problem = _pod_problem(snapshot, newest)
    if problem is None and before and before.name == run.name:
        # Its pods are gone by now; the status has the cause that was read from them.
        return before
    problem = problem or _job_problem(snapshot, newest)
    message = problem.message()[:4096]
    return msgspec.structs.replace(run, reason=problem.reason.code, message=message, next=problem.next[:512])


def last_run_problem(snapshot: Snapshot, run: CronJobRun | None) -> Problem | None:
    """Problem of the last run if it failed; None if it was a run of a former revision."""
    if run is None or run.outcome != OUTCOME_FAILED or run.revision not in {0, present_revision(snapshot).number}:
        return None
    where = Where(object=f"{snapshot.owner.metadata.namespace}/{run.name}")
    return Problem(find_reason(run.reason) or RUN_FAILED, f"last run failed: {run.message}", where, next=run.next)


def active_run_finding(snapshot: Snapshot, runs: CronRuns, template_hash: str) -> Finding:
    """First problem of the active runs of this program. Results of former programs play no role in it."""
    active = tuple(each for each in runs.active if not _of_former_program(snapshot, each, template_hash))
    if not active:
        return Finding()
    pods = [_pods_of(snapshot, each) for each in active]
    isolated = snapshot._replace(owner=_without_status(snapshot.owner), natives=active, pods=tuple(chain(*pods)))
    return first_cause(isolated, tuple(chain.from_iterable(map(retrying.pods_to_diagnose, pods))))


def continuing_runs_text(status: CronJobStatus) -> str:
    """Active runs, which a suspension does not end: it holds the schedule only."""
    replaced = {f"-now-{each}" for each in status.superseded_runs}
    active = [each for each in status.running if not each.endswith(tuple(replaced))]
    return f"; {join_first_few(active)} {'continues' if len(active) == 1 else 'continue'}" if active else ""


def requested_run_number(owner: PinterestCronJob) -> int | Problem:
    """Number of the last manual run that was requested; 0 if there was none."""
    text = owner.metadata.annotations.get(RUN_NOW_ANNOTATION, "")
    if not text or (text.isascii() and text.isdigit() and 0 < int(text) <= MAX_MANUAL_RUN_NUMBER):
        return int(text or 0)
    metadata = owner.metadata
    return Problem(
        DOCUMENT_INVALID,
        f"annotation {RUN_NOW_ANNOTATION} is '{text}': must be a number from 1 to {MAX_MANUAL_RUN_NUMBER}",
        Where(object=metadata.key),
        "increasing the number starts one run",
        f"pin rerun {metadata.name}",
    )


def latest_manual_run_number(owner: PinterestCronJob, runs: CronRuns) -> int:
    """Number of the last manual run that was created: the highest one of a Job, or in the status."""
    return max([owner.status.last_run_now, *(_manual_number(owner, each) for each in (*runs.active, *runs.finished))])


def superseded_runs(snapshot: Snapshot, runs: CronRuns, template_hash: str) -> tuple[int, ...]:
    """Numbers of the manual runs to create again.

    These are runs of a former program that have not started, because the present one may have fixed the cause, and
    those recorded before whose Jobs are deleted by now. A run is deleted only after its number is in the status, so
    that a crash at any point loses none.
    """
    owner: PinterestCronJob = snapshot.owner
    existing = {_manual_number(owner, each) for each in (*runs.active, *runs.finished)}
    deleted = {number for number in owner.status.superseded_runs if number not in existing}
    replaced = {_manual_number(owner, each) for each in runs.active if _is_superseded(snapshot, each, template_hash)}
    return tuple(sorted(deleted | replaced))


def manual_run_numbers(runs: CronRuns, owner: PinterestCronJob) -> frozenset[int]:
    """Numbers of the manual runs that are active."""
    return frozenset(_manual_number(owner, each) for each in runs.active) - {0}


def retained_jobs(snapshot: Snapshot, runs: CronRuns, template_hash: str) -> tuple[tuple[str, str], ...]:
    """Kind and name of the Jobs that stay.

    Kubernetes deletes those it created by the history limits of the CronJob. Manual ones are deleted by the same limits
    here. The one with the highest number stays, or its number is in the status: otherwise it would be created again.
    A Job whose number is recorded as superseded stays for the same reason, unless it is the superseded one.
    """
    owner: PinterestCronJob = snapshot.owner
    recorded = set(owner.status.superseded_runs)
    surplus = [
        each.metadata.name
        for each in runs.active
        if _manual_number(owner, each) in recorded and _is_superseded(snapshot, each, template_hash)
    ]
    for outcome, limit in ((OUTCOME_SUCCEEDED, owner.spec.keep.succeeded), (OUTCOME_FAILED, owner.spec.keep.failed)):
        manual = [each for each in runs.finished if _manual_number(owner, each) and _outcome(each) == outcome]
        ordered = sorted(manual, key=lambda each: _manual_number(owner, each))
        surplus += [each.metadata.name for each in ordered[:-limit] if _manual_number(owner, each) not in recorded]
    return tuple(
        ("Job", each.metadata.name) for each in (*runs.active, *runs.finished) if each.metadata.name not in surplus
    )


def _is_superseded(snapshot: Snapshot, job: Native, template_hash: str) -> bool:
    """True for a manual run of a former program that never started."""
    owner: PinterestCronJob = snapshot.owner
    recorded = 0 < _manual_number(owner, job) <= owner.status.last_run_now
    pods = _pods_of(snapshot, job)
    pending = pods and all(each.status.phase == "Pending" and not _has_started(each) for each in pods)
    return bool(recorded and pending and _of_former_program(snapshot, job, template_hash))


def _of_former_program(snapshot: Snapshot, job: Native, template_hash: str) -> bool:
    """True if the pods would be others now. A revision with another schedule or a pause runs the same program."""
    revision = job.metadata.annotations.get(REVISION_ANNOTATION, "")
    is_former = revision.isdigit() and int(revision) < present_revision(snapshot).number
    pods = _pods_of(snapshot, job)
    return is_former and not (pods and all(each.template_hash == template_hash for each in pods))


def _has_started(pod: Pod) -> bool:
    return any(each.state.running or each.state.terminated for each in pod.status.init_container_statuses)


def _manual_number(owner: PinterestCronJob, job: Native) -> int:
    """Number of a manual run; 0 if Kubernetes created it."""
    ours = job.metadata.controller_uid == owner.metadata.uid
    return names.run_number(owner, job.metadata.name) if ours else 0


def _outcome(job: Native) -> str:
    """Outcome of a run; empty while it is active."""
    return (
        OUTCOME_SUCCEEDED if job.find_condition("Complete") else OUTCOME_FAILED if job.find_condition("Failed") else ""
    )


def _ended_at(job: Native) -> str:
    failed = job.find_condition("Failed")
    time = failed.last_transition_time if failed else job.status.completion_time
    return format_time(time) if time else ""


def _run_of(job: Native) -> CronJobRun:
    return CronJobRun(
        name=job.metadata.name,
        revision=job.int_annotation(REVISION_ANNOTATION),
        due=job.metadata.annotations.get(_SCHEDULED_TIME_ANNOTATION, ""),
        began=job.metadata.creation_timestamp,
        ended=_ended_at(job),
        outcome=_outcome(job),
    )


def _pod_problem(snapshot: Snapshot, job: Native) -> Problem | None:
    """Cause of failure, from the last failed pod."""
    failed = [pod for pod in _pods_of(snapshot, job) if pod.status.phase == "Failed"]
    if not failed or _exceeded_deadline(job):
        return None
    newest = max(failed, key=lambda pod: (pod.metadata.creation_timestamp, pod.metadata.name))
    isolated = snapshot._replace(owner=_without_status(snapshot.owner), natives=(), pods=(newest,))
    return first_cause(isolated, (newest,)).problem


def _job_problem(snapshot: Snapshot, job: Native) -> Problem:
    """Cause of failure, from the Job itself."""
    owner: PinterestCronJob = snapshot.owner
    if _exceeded_deadline(job):
        what = f"the run exceeded deadlineSeconds: {owner.spec.deadline_seconds}"
        longer = edit_command(owner, {"deadlineSeconds": owner.spec.deadline_seconds * 2})
        return Problem(DEADLINE_EXCEEDED, what, next=longer)
    failed = job.find_condition("Failed")
    return Problem(RUN_FAILED, excerpt_start(failed.message if failed else ""), next=f"pin logs {owner.metadata.name}")


def _exceeded_deadline(job: Native) -> bool:
    failed = job.find_condition("Failed")
    return failed is not None and failed.reason == _DEADLINE_EXCEEDED


def _pods_of(snapshot: Snapshot, job: Native) -> tuple[Pod, ...]:
    return tuple(pod for pod in snapshot.pods if pod.metadata.controller_uid == job.metadata.uid)


def _without_status(owner: PinterestCronJob) -> PinterestCronJob:
    """Owner without the results of former runs."""
    return msgspec.structs.replace(owner, status=CronJobStatus())

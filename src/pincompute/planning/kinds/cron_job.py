"""Plans a PinterestCronJob: a CronJob for the scheduled runs, and a Job for each manual run.

A manual run is requested by increasing a number in an annotation. Its Job is named after the number and wanted until it
has been seen. Later passes find the highest number in the name of a Job or, after that was deleted, in the status, so
that each run is created once, even if the operator crashes in between. A manual run that has not started when the
program changes is created again with the new one; other changes, such as a pause, leave it alone.

The status is written once when a run starts, because the next scheduled times change then, and once when it ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

import msgspec

from pincompute.api.cron_job import CronJobStatus, PinterestCronJob
from pincompute.api.names import CONTENT_ANNOTATION, REVISION_ANNOTATION
from pincompute.api.status import READY, Condition
from pincompute.base import reasons
from pincompute.base.problem import Problem, Where
from pincompute.objects.content import Object
from pincompute.objects.cron_schedule import CronSchedule, parse_schedule
from pincompute.objects.schedule_times import load_time_zone, next_time, next_times
from pincompute.objects.times import format_time
from pincompute.planning import names, natives, revision, status
from pincompute.planning.batch import runs
from pincompute.planning.batch.runs import CronRuns
from pincompute.planning.diagnosis import Finding
from pincompute.planning.diagnosis.excerpts import join_first_few
from pincompute.planning.migration import adoption
from pincompute.planning.plan import Plan, soonest
from pincompute.planning.pods import pod
from pincompute.planning.pods.pod import BuiltTemplate, PodOverlay
from pincompute.planning.revision_number import present_revision
from pincompute.planning.snapshot import Native, Snapshot

_NEXT_RUNS = 5
"""Number of scheduled times in the status."""
_RUN_CREATION_GRACE_S = 60.0
"""Time that Kubernetes may take to create the Job of a scheduled run."""
_WAKE_DELAY_S = 1.0
"""Delay after a scheduled time. By then the Job exists, so that one status update covers both changes."""
_OVERLAP = {"forbid": "Forbid", "allow": "Allow", "replace": "Replace"}


def plan(snapshot: Snapshot) -> Plan:
    """Plan the objects of a cron job."""
    owner: PinterestCronJob = snapshot.owner
    built = pod.build_template(snapshot, PodOverlay(pod={"restartPolicy": "Never"}))
    problems = (*built.problems, *_schedule_problems(owner))
    if problems:
        return status.refused_plan(snapshot, problems)
    cron_runs = runs.find_runs(snapshot)
    superseded = runs.superseded_runs(snapshot, cron_runs, built.template_hash)
    pods = tuple(each for each in snapshot.pods if each.template_hash == built.template_hash)
    wanted = (
        natives.service_account(snapshot),
        *natives.configuration_files(snapshot),
        _cron_job(snapshot, built),
        *_manual_runs(snapshot, built, cron_runs, superseded),
        revision.revision_record(snapshot, built, pods),
    )
    new_status = msgspec.structs.replace(_cron_job_status(snapshot, built, cron_runs), superseded_runs=list(superseded))
    finding = _run_finding(snapshot, new_status, cron_runs, built.template_hash)
    new_status = msgspec.structs.replace(
        new_status,
        next=finding.problem.next if finding.problem else "",
        conditions=[_ready_condition(snapshot, new_status, cron_runs, finding.problem)],
    )
    return Plan(
        wanted,
        new_status,
        wake_after_s=_wake_after_s(snapshot, new_status, finding),
        why=finding.problem,
        retained=(
            *revision.retained_revisions(snapshot),
            *runs.retained_jobs(snapshot, cron_runs, built.template_hash),
        ),
        adoption=adoption.plan_adoption(snapshot, wanted),
    )


def _schedule_problems(owner: PinterestCronJob) -> tuple[Problem, ...]:
    """Errors in the schedule or the time zone of an object that was created without the desk's validation."""
    where = owner.metadata.key
    return tuple(
        Problem(reasons.DOCUMENT_INVALID, each.what, Where(object=where), each.note, each.next)
        for each in owner.spec.field_errors(owner.metadata.name)
        if each.path[0] in {"schedule", "timeZone"}
    )


def _cron_job(snapshot: Snapshot, built: BuiltTemplate) -> Object:
    """CronJob, so that Kubernetes creates the runs even while the operator is down."""
    owner: PinterestCronJob = snapshot.owner
    spec = owner.spec
    metadata = {
        "labels": natives.tracking_labels(owner),
        "annotations": {**natives.tracking_annotations(snapshot), **_revision_annotations(snapshot)},
    }
    body: Object = {
        "schedule": " ".join(spec.schedule.split()),
        "timeZone": spec.time_zone,
        "concurrencyPolicy": _OVERLAP[spec.overlap],
        "suspend": bool(spec.suspended),
        "successfulJobsHistoryLimit": spec.keep.succeeded,
        "failedJobsHistoryLimit": spec.keep.failed,
        "jobTemplate": {"metadata": metadata, "spec": _job(owner, built)},
    }
    if spec.start_within_seconds:
        body["startingDeadlineSeconds"] = spec.start_within_seconds
    return natives.build_native(snapshot, "batch/v1", "CronJob", {"spec": body})


def _job(owner: PinterestCronJob, built: BuiltTemplate) -> Object:
    """Spec of a run's Job. A disruption by the node or the platform does not count as a retry."""
    ignore = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    body: Object = {
        "backoffLimit": owner.spec.retries,
        "podFailurePolicy": {"rules": [ignore]},
        "template": built.template,
    }
    if owner.spec.deadline_seconds:
        body["activeDeadlineSeconds"] = owner.spec.deadline_seconds
    return body


def _manual_runs(
    snapshot: Snapshot, built: BuiltTemplate, cron_runs: CronRuns, superseded: Sequence[int]
) -> tuple[Object, ...]:
    """Jobs of superseded runs that are deleted, and of a requested run that was not created yet.

    Like scheduled runs they wait for an active one, unless overlap is allowed; and none starts after the end of the
    cron job's life.
    """
    owner: PinterestCronJob = snapshot.owner
    if snapshot.expired:
        return ()
    numbers: list[int] = [each for each in superseded if each not in runs.manual_run_numbers(cron_runs, owner)]
    requested = runs.requested_run_number(owner)
    if isinstance(requested, int) and requested > runs.latest_manual_run_number(owner, cron_runs):
        numbers.append(requested)
    if owner.spec.overlap != "allow":
        numbers = [] if cron_runs.active else numbers[:1]
    body, annotations = {"spec": _job(owner, built)}, _revision_annotations(snapshot)
    return tuple(
        natives.build_native(snapshot, "batch/v1", "Job", body, name=names.run(owner, each), annotations=annotations)
        for each in numbers
    )


def _blocking_run(owner: PinterestCronJob, cron_runs: CronRuns) -> str:
    """Name of the active run that a manual run has to wait for."""
    return cron_runs.active[0].metadata.name if cron_runs.active and owner.spec.overlap != "allow" else ""


def _revision_annotations(snapshot: Snapshot) -> dict[str, str]:
    revision = present_revision(snapshot)
    return {REVISION_ANNOTATION: str(revision.number), CONTENT_ANNOTATION: revision.content}


def _cron_job_status(snapshot: Snapshot, built: BuiltTemplate, cron_runs: CronRuns) -> CronJobStatus:
    """Status without its conditions."""
    owner: PinterestCronJob = snapshot.owner
    spec, before = owner.spec, owner.status
    pods = status.active_pods_of(snapshot)
    schedule = "" if spec.suspended else f"{' '.join(spec.schedule.split())} {spec.time_zone}"
    last = runs.last_finished_run(snapshot, cron_runs)
    common = status.common_status(snapshot, built, pods, None)
    unchanged = before.effective_schedule == schedule and before.effective_since
    return msgspec.structs.replace(
        msgspec.convert(common, CronJobStatus, from_attributes=True),
        progress=status.pod_progress(len(cron_runs.active), pods),
        next_runs=_next_runs(snapshot) if schedule else [],
        running=[each.metadata.name for each in cron_runs.active][-100:],
        last_run=last,
        last_success=last.ended if last and last.outcome == runs.OUTCOME_SUCCEEDED else before.last_success,
        last_run_now=runs.latest_manual_run_number(owner, cron_runs),
        effective_schedule=schedule,
        effective_since=before.effective_since if unchanged else format_time(snapshot.now),
    )


def _next_runs(snapshot: Snapshot) -> list[str]:
    schedule, zone = _schedule_and_zone(snapshot.owner)
    return [_local_time(each, zone) for each in next_times(schedule, zone, snapshot.now, _NEXT_RUNS)]


def _local_time(time: datetime, zone: ZoneInfo) -> str:
    """Time in the zone of the schedule, with its offset from UTC."""
    return time.astimezone(zone).isoformat().replace("+00:00", "Z")


def _schedule_and_zone(owner: PinterestCronJob) -> tuple[CronSchedule, ZoneInfo]:
    return parse_schedule(owner.spec.schedule), load_time_zone(owner.spec.time_zone)


def _run_finding(snapshot: Snapshot, new_status: CronJobStatus, cron_runs: CronRuns, template_hash: str) -> Finding:
    """First problem: of an active run, then of the last run, then of a scheduled run that did not start."""
    number = runs.requested_run_number(snapshot.owner)
    if isinstance(number, Problem):
        return Finding(number)
    active = runs.active_run_finding(snapshot, cron_runs, template_hash)
    if snapshot.owner.spec.suspended:
        return active
    overdue = _overdue_finding(snapshot, new_status, cron_runs)
    problem = active.problem or runs.last_run_problem(snapshot, new_status.last_run) or overdue.problem
    return Finding(problem, soonest(active.recheck_after_s, overdue.recheck_after_s))


def _overdue_finding(snapshot: Snapshot, new_status: CronJobStatus, cron_runs: CronRuns) -> Finding:
    """Problem of a run that has been due since the last one and was not created."""
    owner: PinterestCronJob = snapshot.owner
    cron_job = _existing_cron_job(snapshot)
    if not new_status.effective_schedule or cron_job is None:
        return Finding()
    schedule, zone = _schedule_and_zone(owner)
    since = datetime.fromisoformat(new_status.effective_since)
    due = next_time(schedule, zone, max(since, cron_job.status.last_schedule_time or since))
    late_s = (snapshot.now - due).total_seconds() if due else -1.0
    if due is None or late_s < 0:
        return Finding()
    if late_s < _RUN_CREATION_GRACE_S:
        return Finding(recheck_after_s=_RUN_CREATION_GRACE_S - late_s)
    return Finding(_missed_run_problem(owner, _local_time(due, zone), cron_runs))


def _missed_run_problem(owner: PinterestCronJob, due: str, cron_runs: CronRuns) -> Problem:
    project, name = owner.metadata.namespace, owner.metadata.name
    where, within = Where(object=f"{project}/{name}"), owner.spec.start_within_seconds
    note = f"startWithinSeconds: {within}" if within else ""
    active = [each.metadata.name for each in cron_runs.active if each.metadata.controller_uid != owner.metadata.uid]
    if active and owner.spec.overlap == "forbid":
        what = f"run of {due} not started: {active[0]} is still running"
        return Problem(reasons.RUN_OVERLAPS, what, where, note, "set overlap to allow or replace, or shorten the runs")
    what = f"run of {due} not started"
    return Problem(reasons.RUN_MISSED, what, where, note, f"pin rerun {name}")


def _existing_cron_job(snapshot: Snapshot) -> Native | None:
    return next((each for each in snapshot.natives if each.kind == "CronJob"), None)


def _ready_condition(
    snapshot: Snapshot, new_status: CronJobStatus, cron_runs: CronRuns, why: Problem | None
) -> Condition:
    """True if the cron job is scheduled or suspended, and its last run succeeded."""
    owner: PinterestCronJob = snapshot.owner
    if why:
        return status.build_condition(snapshot, READY, why.reason, why.message(), status=False)
    manual = _manual_runs_text(owner, new_status, cron_runs)
    if owner.spec.suspended:
        message = f"suspended by {owner.spec.suspended}{runs.continuing_runs_text(new_status)}{manual}"
        return status.build_condition(snapshot, READY, reasons.SUSPENDED, message, status=True)
    if _existing_cron_job(snapshot) is None:
        return status.build_condition(snapshot, READY, reasons.PROGRESSING, "not scheduled yet", status=False)
    message = f"on schedule, {_last_run_text(new_status)}{manual}"
    return status.build_condition(snapshot, READY, reasons.AVAILABLE, message, status=True)


def _manual_runs_text(owner: PinterestCronJob, new_status: CronJobStatus, cron_runs: CronRuns) -> str:
    """Manual runs that wait or are created again."""
    number, blocking = runs.requested_run_number(owner), _blocking_run(owner, cron_runs)
    again = [names.run(owner, each) for each in new_status.superseded_runs]
    texts = [f"{join_first_few(again)} not started before the program changed: created again"] if again else []
    if blocking and isinstance(number, int) and number > new_status.last_run_now:
        texts.append(f"manual run {number} waits for {blocking}")
    return "".join(f"; {each}" for each in texts)


def _last_run_text(new_status: CronJobStatus) -> str:
    if new_status.last_run is None:
        return "no run has ended yet"
    if new_status.last_run.outcome == runs.OUTCOME_FAILED:
        return "no run of this revision has ended yet"
    return "last run succeeded"


def _wake_after_s(snapshot: Snapshot, new_status: CronJobStatus, finding: Finding) -> float | None:
    due = [(datetime.fromisoformat(each) - snapshot.now).total_seconds() for each in new_status.next_runs[:1]]
    # A superseded run is deleted by the pass after the one that records it.
    recorded = new_status.superseded_runs == snapshot.owner.status.superseded_runs
    return soonest(
        *(each + _WAKE_DELAY_S for each in due), finding.recheck_after_s, None if recorded else _WAKE_DELAY_S
    )

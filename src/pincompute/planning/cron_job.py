"""What a PinterestCronJob becomes: a CronJob that makes its runs when they are due, and a Job for each run by hand.

A run by hand is asked for by a number that is higher than before. Its Job is called after the number and wanted until
it has been seen. Whoever looks later finds the highest number in a Job, or, where people removed that, in the status:
so a run is made once, wherever the operator ends.

The status is written once when a run begins, for then the next five times are others, and once when it ends.
"""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import msgspec

from pincompute.api.cron_job import CronJobStatus, PinterestCronJob
from pincompute.api.names import REVISION
from pincompute.api.status import READY, Condition
from pincompute.base import reasons
from pincompute.base.problem import Problem, Where
from pincompute.objects.content import Object
from pincompute.objects.occurrences import following, next_times, zone_of
from pincompute.objects.schedule import Schedule, parse
from pincompute.objects.times import stamp
from pincompute.planning import names, natives, revision, status
from pincompute.planning.batch import runs
from pincompute.planning.batch.runs import Runs
from pincompute.planning.plan import Plan, soonest
from pincompute.planning.pods import pod
from pincompute.planning.pods.pod import Made, Shape
from pincompute.planning.snapshot import Native, Snapshot
from pincompute.planning.why import Finding

NEXT = 5
"""Times that the status tells."""
PATIENCE = 60.0
"""Seconds that Kubernetes may take to make a run that is due."""
_A_MOMENT = 1.0
"""After a run is due: by then it has been made, and one report tells of both."""
_OVERLAP = {"forbid": "Forbid", "allow": "Allow", "replace": "Replace"}


def plan(snapshot: Snapshot) -> Plan:
    """The one signature; planning the same snapshot twice gives the same plan."""
    owner: PinterestCronJob = snapshot.owner
    made = pod.make(snapshot, Shape(pod={"restartPolicy": "Never"}))
    problems = (*made.problems, *_unreadable(owner))
    if problems:
        return status.refused(snapshot, problems)
    found = runs.find(snapshot)
    ran = tuple(each for each in snapshot.pods if each.template == made.digest)
    wanted = (
        natives.service_account(snapshot),
        *natives.configuration(snapshot),
        _cron_job(snapshot, made),
        *_by_hand(snapshot, made, found),
        revision.record(snapshot, made, ran),
    )
    said = _status(snapshot, made, found)
    finding = _why(snapshot, said, found)
    said = msgspec.structs.replace(
        said,
        next=finding.problem.next if finding.problem else "",
        conditions=[_ready(snapshot, said, found, finding.problem)],
    )
    kept = (*revision.kept(snapshot), *runs.kept(snapshot, found))
    return Plan(wanted, said, _wake(snapshot, said, finding), finding.problem, kept)


def _unreadable(owner: PinterestCronJob) -> tuple[Problem, ...]:
    """What was written past our door."""
    where = owner.metadata.place
    return tuple(
        Problem(reasons.DOCUMENT_INVALID, each.what, Where(object=where), each.note, each.next)
        for each in owner.spec.faults(owner.metadata.name)
        if each.path[0] in {"schedule", "timeZone"}
    )


def _cron_job(snapshot: Snapshot, made: Made) -> Object:
    """Kubernetes' own controller makes the runs, also while nobody of ours is there."""
    owner: PinterestCronJob = snapshot.owner
    spec = owner.spec
    metadata = {"labels": natives.labels(owner), "annotations": {**natives.tracking(snapshot), **_revision(owner)}}
    body: Object = {
        "schedule": " ".join(spec.schedule.split()),
        "timeZone": spec.time_zone,
        "concurrencyPolicy": _OVERLAP[spec.overlap],
        "suspend": bool(spec.suspended),
        "successfulJobsHistoryLimit": spec.keep.succeeded,
        "failedJobsHistoryLimit": spec.keep.failed,
        "jobTemplate": {"metadata": metadata, "spec": _job(owner, made)},
    }
    if spec.start_within_seconds:
        body["startingDeadlineSeconds"] = spec.start_within_seconds
    return natives.native(snapshot, "batch/v1", "CronJob", {"spec": body})


def _job(owner: PinterestCronJob, made: Made) -> Object:
    """What a node or the platform ended is nobody's fault, and no retry."""
    ignore = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    body: Object = {
        "backoffLimit": owner.spec.retries,
        "podFailurePolicy": {"rules": [ignore]},
        "template": made.template,
    }
    if owner.spec.deadline_seconds:
        body["activeDeadlineSeconds"] = owner.spec.deadline_seconds
    return body


def _by_hand(snapshot: Snapshot, made: Made, found: Runs) -> tuple[Object, ...]:
    """Where one is asked for that was not made yet; it waits as any other for a run that goes."""
    owner: PinterestCronJob = snapshot.owner
    number = runs.asked(owner)
    if isinstance(number, Problem) or number <= runs.made(owner, found) or _waits_for(owner, found):
        return ()
    body, name = {"spec": _job(owner, made)}, names.run(owner, number)
    return (natives.native(snapshot, "batch/v1", "Job", body, name=name, annotations=_revision(owner)),)


def _waits_for(owner: PinterestCronJob, found: Runs) -> str:
    return found.going[0].metadata.name if found.going and owner.spec.overlap != "allow" else ""


def _revision(owner: PinterestCronJob) -> dict[str, str]:
    return {REVISION: str(owner.metadata.generation)}


def _status(snapshot: Snapshot, made: Made, found: Runs) -> CronJobStatus:
    """All but what is wrong with it."""
    owner: PinterestCronJob = snapshot.owner
    spec, before = owner.spec, owner.status
    pods = status.pods_of(snapshot)
    follows = "" if spec.suspended else f"{' '.join(spec.schedule.split())} {spec.time_zone}"
    last = runs.last(snapshot, found)
    said = msgspec.convert(status.common(snapshot, made, pods, None), CronJobStatus, from_attributes=True)
    return msgspec.structs.replace(
        said,
        progress=status.progress(len(found.going), pods),
        next_runs=_next_runs(snapshot) if follows else [],
        running=[each.metadata.name for each in found.going][-100:],
        last_run=last,
        last_success=last.ended if last and last.outcome == runs.SUCCEEDED else before.last_success,
        ran_now=runs.made(owner, found),
        follows=follows,
        since=before.since if before.follows == follows and before.since else stamp(snapshot.now),
    )


def _next_runs(snapshot: Snapshot) -> list[str]:
    schedule, zone = _clock(snapshot.owner)
    return [_spelled(each, zone) for each in next_times(schedule, zone, snapshot.now, NEXT)]


def _spelled(moment: datetime, zone: ZoneInfo) -> str:
    """As the clock on the wall there says it, and how far that is from UTC."""
    return moment.astimezone(zone).isoformat().replace("+00:00", "Z")


def _clock(owner: PinterestCronJob) -> tuple[Schedule, ZoneInfo]:
    return parse(owner.spec.schedule), zone_of(owner.spec.time_zone)


def _why(snapshot: Snapshot, said: CronJobStatus, found: Runs) -> Finding:
    """What keeps the present run from getting on, then what became of the last one, then that none began."""
    number = runs.asked(snapshot.owner)
    if isinstance(number, Problem):
        return Finding(number)
    stuck = runs.stuck(snapshot, found)
    if snapshot.owner.spec.suspended:
        return stuck
    overdue = _overdue(snapshot, said, found)
    problem = stuck.problem or runs.failure(snapshot, said.last_run) or overdue.problem
    return Finding(problem, soonest(stuck.look_again, overdue.look_again))


def _overdue(snapshot: Snapshot, said: CronJobStatus, found: Runs) -> Finding:
    """A run that was due since the last one, and has not begun."""
    owner: PinterestCronJob = snapshot.owner
    native = _native(snapshot)
    if not said.follows or native is None:
        return Finding()
    schedule, zone = _clock(owner)
    since = datetime.fromisoformat(said.since)
    due = following(schedule, zone, max(since, native.status.last_schedule_time or since))
    late = (snapshot.now - due).total_seconds() if due else -1.0
    if due is None or late < 0:
        return Finding()
    if late < PATIENCE:
        return Finding(look_again=PATIENCE - late)
    return Finding(_missed(owner, _spelled(due, zone), found))


def _missed(owner: PinterestCronJob, due: str, found: Runs) -> Problem:
    project, name = owner.metadata.namespace, owner.metadata.name
    where, within = Where(object=f"{project}/{name}"), owner.spec.start_within_seconds
    note = f"it could only begin within {within} seconds" if within else ""
    going = [each.metadata.name for each in found.going if each.metadata.controller != owner.metadata.uid]
    if going and owner.spec.overlap == "forbid":
        what = f"the run of {due} could not begin, because {going[0]} still goes"
        return Problem(reasons.RUN_OVERLAPS, what, where, note, "write overlap: allow or replace, or make runs shorter")
    what = f"the run of {due} has not begun"
    return Problem(reasons.RUN_MISSED, what, where, note, f"pin rerun {name}")


def _native(snapshot: Snapshot) -> Native | None:
    return next((each for each in snapshot.natives if each.kind == "CronJob"), None)


def _ready(snapshot: Snapshot, said: CronJobStatus, found: Runs, why: Problem | None) -> Condition:
    """It is on its schedule, or off it on purpose, and the last run that ended succeeded."""
    owner: PinterestCronJob = snapshot.owner
    if why:
        return status.said(snapshot, READY, why.reason, why.message(), status=False)
    number, before = runs.asked(owner), _waits_for(owner, found)
    waits = (
        f"; run {number} by hand waits for {before}"
        if before and isinstance(number, int) and number > said.ran_now
        else ""
    )
    if owner.spec.suspended:
        message = f"suspended by {owner.spec.suspended}{waits}"
        return status.said(snapshot, READY, reasons.SUSPENDED, message, status=True)
    if _native(snapshot) is None:
        return status.said(snapshot, READY, reasons.PROGRESSING, "it is not on its schedule yet", status=False)
    message = _ran(said)
    return status.said(snapshot, READY, reasons.AVAILABLE, f"on schedule, {message}{waits}", status=True)


def _ran(said: CronJobStatus) -> str:
    if said.last_run is None:
        return "no run has ended yet"
    if said.last_run.outcome == runs.FAILED:
        return "no run of this revision has ended yet"
    return "the last run succeeded"


def _wake(snapshot: Snapshot, said: CronJobStatus, finding: Finding) -> float | None:
    due = [(datetime.fromisoformat(each) - snapshot.now).total_seconds() + _A_MOMENT for each in said.next_runs[:1]]
    return soonest(*due, finding.look_again)

"""The runs of a periodic job: Jobs that Kubernetes makes when they are due, and those that were asked for by hand."""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

import msgspec

from pincompute.api.cron_job import FAILED, SUCCEEDED, CronJobStatus, PinterestCronJob, Run
from pincompute.api.names import REVISION, RUN_NOW
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import DEADLINE_EXCEEDED, DOCUMENT_INVALID, REASONS, RUN_FAILED
from pincompute.objects.times import stamp
from pincompute.planning import names
from pincompute.planning.batch import again
from pincompute.planning.snapshot import Native, Pod, Snapshot
from pincompute.planning.why import Finding, first_cause
from pincompute.planning.why.words import beginning

MOST = 999_999
"""By hand; a higher number would make a name too long."""
_DUE = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_DEADLINE = "DeadlineExceeded"


class Runs(NamedTuple):
    """The eldest first."""

    going: tuple[Native, ...]
    ended: tuple[Native, ...]


def find(snapshot: Snapshot) -> Runs:
    jobs = [each for each in snapshot.natives if each.kind == "Job" and _ours(snapshot.owner, each)]
    ordered = sorted(jobs, key=lambda each: (each.metadata.creation_timestamp, each.metadata.name))
    ended = tuple(each for each in ordered if _outcome(each))
    return Runs(tuple(each for each in ordered if each not in ended), ended)


def _ours(owner: PinterestCronJob, job: Native) -> bool:
    """Made by us, or by the CronJob that we made: at its time, or by `kubectl create job --from`."""
    maker = next((each for each in job.metadata.owner_references if each.get("controller")), {})
    made_for_us = (maker.get("kind"), maker.get("name")) == ("CronJob", owner.metadata.name)
    return made_for_us or job.metadata.controller == owner.metadata.uid


def last(snapshot: Snapshot, runs: Runs) -> Run | None:
    """The last that has ended, remembered when its Job is gone."""
    before: Run | None = snapshot.owner.status.last_run
    if not runs.ended:
        return before
    newest = max(runs.ended, key=lambda each: (_ended(each), each.metadata.name))
    if before and before.ended > _ended(newest):
        return before
    told = _told(newest)
    if told.outcome == SUCCEEDED:
        return told
    problem = _seen(snapshot, newest)
    if problem is None and before and before.name == told.name:
        return before
    problem = problem or _unseen(snapshot, newest)
    said = problem.message()[:4096]
    return msgspec.structs.replace(told, reason=problem.reason.code, message=said, next=problem.next[:512])


def failure(snapshot: Snapshot, run: Run | None) -> Problem | None:
    """That the last run failed, and how; what a former revision did is not held against this one."""
    if run is None or run.outcome != FAILED or run.revision not in {0, snapshot.owner.metadata.generation}:
        return None
    where = Where(object=f"{snapshot.owner.metadata.namespace}/{run.name}")
    return Problem(REASONS.get(run.reason, RUN_FAILED), f"the last run failed: {run.message}", where, next=run.next)


def stuck(snapshot: Snapshot, runs: Runs) -> Finding:
    """What keeps a run that goes from getting on; judged by what goes now, whatever was before, and what a former
    revision does is not held against this one."""
    going = tuple(each for each in runs.going if not _former(snapshot, each))
    if not going:
        return Finding()
    pods = [_pods(snapshot, each) for each in going]
    alone = snapshot._replace(owner=_unjudged(snapshot.owner), natives=going, pods=tuple(chain(*pods)))
    return first_cause(alone, tuple(chain.from_iterable(map(again.judged, pods))))


def asked(owner: PinterestCronJob) -> int | Problem:
    """The number that it should run for by hand; 0 where nobody asks."""
    said = owner.metadata.annotations.get(RUN_NOW, "")
    if not said or (said.isascii() and said.isdigit() and 0 < int(said) <= MOST):
        return int(said or 0)
    metadata = owner.metadata
    return Problem(
        DOCUMENT_INVALID,
        f"the annotation {RUN_NOW} is '{said}', and not a number from 1 to {MOST}",
        Where(object=metadata.place),
        "a number higher than before runs it once",
        f"pin rerun {metadata.name}",
    )


def made(owner: PinterestCronJob, runs: Runs) -> int:
    """The highest number that it ran by hand for: a Job is the proof, and the status the memory."""
    return max([owner.status.ran_now, *(_number(owner, each) for each in (*runs.going, *runs.ended))])


def kept(snapshot: Snapshot, runs: Runs) -> tuple[tuple[str, str], ...]:
    """Kubernetes keeps its own as it was told to; of those by hand as many stay as should.

    Nothing else removes them, and the highest number is never among those that ended and go: what was made is always
    seen, there or in the status.
    """
    owner: PinterestCronJob = snapshot.owner
    over = [each.metadata.name for each in runs.going if _given_up(snapshot, each)]
    for outcome, most in ((SUCCEEDED, owner.spec.keep.succeeded), (FAILED, owner.spec.keep.failed)):
        by_hand = [each for each in runs.ended if _number(owner, each) and _outcome(each) == outcome]
        numbered = sorted(by_hand, key=lambda each: _number(owner, each))
        over += [each.metadata.name for each in numbered[:-most]]
    return tuple(("Job", each.metadata.name) for each in (*runs.going, *runs.ended) if each.metadata.name not in over)


def _given_up(snapshot: Snapshot, job: Native) -> bool:
    """Asked for by hand, of a former revision, and nothing of it has ever run: what kept it is mended by now."""
    owner: PinterestCronJob = snapshot.owner
    remembered = 0 < _number(owner, job) <= owner.status.ran_now
    pods = _pods(snapshot, job)
    waits = pods and all(each.status.phase == "Pending" and not _runs(each) for each in pods)
    return bool(remembered and _former(snapshot, job) and waits)


def _former(snapshot: Snapshot, job: Native) -> bool:
    revision = job.metadata.annotations.get(REVISION, "")
    return revision.isdigit() and int(revision) < snapshot.owner.metadata.generation


def _runs(pod: Pod) -> bool:
    return any(each.state.running or each.state.terminated for each in pod.status.init_container_statuses)


def _number(owner: PinterestCronJob, job: Native) -> int:
    """0 where Kubernetes made it."""
    ours = job.metadata.controller == owner.metadata.uid
    return names.run_number(owner, job.metadata.name) if ours else 0


def _outcome(job: Native) -> str:
    """Empty while it goes."""
    return SUCCEEDED if job.says("Complete") else FAILED if job.says("Failed") else ""


def _ended(job: Native) -> str:
    failed = job.says("Failed")
    moment = failed.last_transition_time if failed else job.status.completion_time
    return stamp(moment) if moment else ""


def _told(job: Native) -> Run:
    revision = job.metadata.annotations.get(REVISION, "")
    return Run(
        name=job.metadata.name,
        revision=int(revision) if revision.isdigit() else 0,
        due=job.metadata.annotations.get(_DUE, ""),
        began=job.metadata.creation_timestamp,
        ended=_ended(job),
        outcome=_outcome(job),
    )


def _seen(snapshot: Snapshot, job: Native) -> Problem | None:
    """How it failed, by the last of its pods that did."""
    failed = [pod for pod in _pods(snapshot, job) if pod.status.phase == "Failed"]
    if not failed or not _in_time(job):
        return None
    newest = max(failed, key=lambda pod: (pod.metadata.creation_timestamp, pod.metadata.name))
    alone = snapshot._replace(owner=_unjudged(snapshot.owner), natives=(), pods=(newest,))
    return first_cause(alone, (newest,)).problem


def _unseen(snapshot: Snapshot, job: Native) -> Problem:
    owner: PinterestCronJob = snapshot.owner
    logs = f"pin logs {owner.metadata.name}"
    if not _in_time(job):
        what = "it took longer than deadlineSeconds allows"
        return Problem(DEADLINE_EXCEEDED, what, next=f"raise deadlineSeconds in the file, or: {logs}")
    said = job.says("Failed")
    return Problem(RUN_FAILED, beginning(said.message if said else ""), next=logs)


def _in_time(job: Native) -> bool:
    said = job.says("Failed")
    return said is None or said.reason != _DEADLINE


def _pods(snapshot: Snapshot, job: Native) -> tuple[Pod, ...]:
    return tuple(pod for pod in snapshot.pods if pod.metadata.controller == job.metadata.uid)


def _unjudged(owner: PinterestCronJob) -> PinterestCronJob:
    """That former runs were well says nothing of this one."""
    return msgspec.structs.replace(owner, status=CronJobStatus())

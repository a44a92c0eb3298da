"""What a PinterestJobSet becomes: an indexed Job for each attempt, or a Job for each task that keeps claims of its own.

A Job can never change what it runs. So another program, list or size is a new revision, which begins from nothing and
ends what ran before; the pace (parallelism, deadline, suspension) changes where it is; and of a new runtime its pods
get what they can where they are, and its next attempt gets all. What has ended is remembered in the status, and not
begun again when its Jobs are gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from pincompute.api.job_set import JobSetSpec
from pincompute.api.job_set_status import AttemptStatus, JobSetStatus
from pincompute.api.names import FIXED, PACE
from pincompute.base.problem import Problem
from pincompute.objects.content import Object
from pincompute.objects.numbers import parse, spell
from pincompute.planning import names, natives, revision, status
from pincompute.planning.batch import again, attempts, jobs, outcome, tasks
from pincompute.planning.batch.attempts import Course
from pincompute.planning.batch.failures import Cause, grouped
from pincompute.planning.plan import Plan, soonest
from pincompute.planning.pods.pod import Made
from pincompute.planning.runtimes.in_place import Change, Way, of_work
from pincompute.planning.snapshot import Native, Pod, Snapshot
from pincompute.planning.why import Finding, first_cause


class Running(NamedTuple):
    """The attempt that runs: its natives, and its pods that live."""

    made: Made
    wanted: tuple[Object, ...] = ()
    kept: tuple[str, ...] = ()
    """Jobs that end as they began."""
    pods: tuple[Pod, ...] = ()
    judged: tuple[Pod, ...] = ()
    """Those that say whether anything is wrong already."""
    retried: Sequence[Cause] = ()
    """How it failed, in each place in which something failed and is tried again."""
    problems: tuple[Problem, ...] = ()
    stuck: Problem | None = None
    """What was asked of a Job that can no longer be changed."""
    way: Way = Way({})
    """What becomes of its pods where they are, with a runtime that its Jobs will never have."""
    renewed: int = 0


def plan(snapshot: Snapshot) -> Plan:
    """The one signature; planning the same snapshot twice gives the same plan."""
    found = attempts.course(snapshot)
    record = found.running
    running = _running(snapshot, found, record) if record else _rests(snapshot, found)
    if record and not attempts.begun(snapshot, found, record):
        found.attempts[-1] = msgspec.structs.replace(record, runtime=running.made.runtime)
    if running.problems:
        refused = status.refused(snapshot, running.problems)
        return refused._replace(status=msgspec.structs.replace(refused.status, revision=snapshot.owner.status.revision))
    finding = _finding(snapshot, found, running)
    why = finding.problem or running.stuck or outcome.why(snapshot, found)
    wanted = (
        natives.service_account(snapshot),
        *natives.configuration(snapshot),
        *_claims(snapshot),
        *running.wanted,
        revision.record(snapshot, running.made, _ran(snapshot, found)),
    )
    kept = [*revision.kept(snapshot), *(("Job", name) for name in running.kept), *_ended(snapshot, found)]
    wake = soonest(_wake(snapshot, found, finding.look_again), running.way.look_again)
    return Plan(wanted, _status(snapshot, found, running, why), wake, why, tuple(kept), running.way.steps)


def _running(snapshot: Snapshot, found: Course, record: AttemptStatus) -> Running:
    """Each Job as it is wanted; one that was made otherwise, say by an earlier PinCompute, ends as it began."""
    owner = snapshot.owner
    begun = attempts.begun(snapshot, found, record)
    seen = attempts.jobs(snapshot, found, record.number)
    turn = attempts.turn(snapshot, found, record) if owner.spec.retained else [None]
    made = [jobs.made(snapshot, found, record, task, begun=begun) for task in turn]
    wanted = {}
    stuck = None
    for task, each in zip(turn, made, strict=True):
        job = jobs.job(snapshot, found, record, each, task)
        name, said = job["metadata"]["name"], job["metadata"]["annotations"]
        before = seen.get(name)
        if before is None and each.problems:
            return Running(each, problems=each.problems)
        if before is None or (not each.problems and _alike(before, said[FIXED])):
            wanted[name] = job
        elif before.metadata.annotations.get(PACE) != said[PACE]:
            stuck = outcome.cannot_change(snapshot, before)
    changes = _changes(snapshot, found, record, seen, turn) if begun else []
    places = attempts.places(snapshot, seen)
    told = tasks.config_map(snapshot, sorted(parse(record.tasks)), names.tasks(owner, found.revision, record.number))
    return Running(
        made=made[0] if made and not made[0].problems else Made({}, record.runtime, tuple(owner.status.parts)),
        wanted=(*told, *wanted.values()),
        kept=tuple(name for name in sorted(seen) if name not in wanted),
        pods=attempts.living(snapshot, sorted(seen)),
        judged=tuple(pod for place in places for pod in again.judged(place)),
        retried=attempts.retried(places) if owner.spec.retries else (),
        stuck=stuck,
        way=of_work(changes),
        renewed=sum(len(each.changed) for each in changes),
    )


def _changes(
    snapshot: Snapshot, found: Course, record: AttemptStatus, seen: dict[str, Native], turn: Sequence[int | None]
) -> list[Change]:
    """From what the pods of each Job run to what they would be made with if it began now."""
    changes = []
    for task in turn:
        made = jobs.made(snapshot, found, record, task, begun=False)
        name = jobs.called(snapshot, found, record, task)
        if name in seen and not made.problems and made.runtime != record.runtime:
            pods = attempts.living(snapshot, [name])
            # Nobody asks tasks: only the roll says how many may be away.
            changes.append(Change(snapshot, made, pods, len(pods), "100%"))
    return changes


def _alike(before: Native, fixed: str) -> bool:
    """Whether what can never change in it is what is wanted."""
    return before.metadata.annotations.get(FIXED, fixed) == fixed


def _rests(snapshot: Snapshot, found: Course) -> Running:
    """All attempts have ended."""
    return Running(Made({}, found.attempts[-1].runtime, tuple(snapshot.owner.status.parts)))


def _ran(snapshot: Snapshot, found: Course) -> tuple[Pod, ...]:
    """Also those that have ended: a quick one may never be seen to run. Of what is kept still nothing runs any more."""
    made = () if snapshot.owner.spec.suspended else sorted(attempts.jobs(snapshot, found))
    return tuple(pod for name in made for pod in attempts.pods(snapshot, name))


def _finding(snapshot: Snapshot, found: Course, running: Running) -> Finding:
    """What keeps its pods from running; kept still on purpose, it has none, and nothing is wrong."""
    spec: JobSetSpec = snapshot.owner.spec
    return Finding() if found.running is None or spec.suspended else first_cause(snapshot, running.judged)


def _claims(snapshot: Snapshot) -> list[Object]:
    """Of every task, whatever attempt it is in."""
    spec: JobSetSpec = snapshot.owner.spec
    return [
        tasks.claim(snapshot, each, names.task_claim(snapshot.owner, each.name, task))
        for each in spec.claims
        if each.retained
        for task in range(spec.count)
    ]


def _ended(snapshot: Snapshot, found: Course) -> list[tuple[str, str]]:
    """What remains of attempts that have ended, for as long as it can be looked at."""
    seen = {(each.kind, each.metadata.name) for each in snapshot.natives}
    kept: list[tuple[str, str]] = []
    for record in found.attempts:
        if record.ended and _keeping(snapshot, record) > 0:
            jobs_of_it = attempts.jobs(snapshot, found, record.number)
            # Those of tasks that were not needed any more, or came too late, are ended.
            kept += [("Job", name) for name in sorted(jobs_of_it) if attempts.finished(jobs_of_it[name])]
            kept.append(("ConfigMap", names.tasks(snapshot.owner, found.revision, record.number)))
    return [each for each in kept if each in seen]


def _keeping(snapshot: Snapshot, record: AttemptStatus) -> float:
    """Seconds for which it is still kept."""
    since = (snapshot.now - datetime.fromisoformat(record.ended)).total_seconds()
    return float(snapshot.owner.spec.keep_seconds) - since


def _wake(snapshot: Snapshot, found: Course, look_again: float | None) -> float | None:
    moments = [look_again, attempts.left(snapshot, found.running) if found.running else None]
    keeping = [
        _keeping(snapshot, each)
        for each in found.attempts
        if each.ended and attempts.jobs(snapshot, found, each.number)
    ]
    return min([each for each in (*moments, *keeping) if each is not None and each > 0], default=None)


def _status(snapshot: Snapshot, found: Course, running: Running, why: Problem | None) -> JobSetStatus:
    spec: JobSetSpec = snapshot.owner.spec
    common = status.common(snapshot, running.made, running.pods, why)
    started = sum(pod.status.phase == "Running" for pod in running.pods)
    said = msgspec.convert(common, JobSetStatus, from_attributes=True)
    return msgspec.structs.replace(
        said,
        revision=found.revision,
        runtime=found.attempts[-1].runtime,
        renewed=running.renewed,
        progress=status.progress(outcome.wanted_now(snapshot, found), running.pods),
        conditions=[outcome.condition(snapshot, found, started, why, running.retried)],
        work=found.work,
        tasks=spec.count,
        done=len(found.done),
        failed=len(found.failures),
        running=started,
        retrying=len(running.retried),
        completed=spell(found.done),
        failures=grouped(found.failures),
        attempts=found.attempts,
    )

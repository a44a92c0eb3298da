"""Plans a PinterestJobSet: an indexed Job for each attempt, or a Job per task where an index does not suffice.

The template of a Job is immutable. A change of the program, the items or the number of tasks therefore creates a new
revision, which starts from the beginning and ends the Jobs of the former one. Parallelism, deadline and suspension are
changed in the existing Job. A new runtime reaches running pods as far as it can be applied in place, and the next
attempt completely. Results are kept in the status: a finished attempt does not start again when its Jobs are deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from pincompute.api.job_set import JobSetSpec, PinterestJobSet
from pincompute.api.job_set_status import AttemptStatus, JobSetStatus
from pincompute.api.names import IMMUTABLE_HASH_ANNOTATION, MUTABLE_HASH_ANNOTATION
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import DOCUMENT_INVALID
from pincompute.objects.content import Object
from pincompute.objects.number_sets import format_numbers, parse_numbers
from pincompute.planning import names, natives, revision, status
from pincompute.planning.batch import attempts, jobs, outcome, retrying, tasks
from pincompute.planning.batch.attempts import BatchState
from pincompute.planning.batch.failures import FailureCause, group_failures
from pincompute.planning.diagnosis import Finding, first_cause
from pincompute.planning.observed_pods import Pod
from pincompute.planning.plan import Plan, soonest
from pincompute.planning.pods.pod import BuiltTemplate
from pincompute.planning.runtimes.in_place import InPlaceUpdate, TemplateChange, update_running_work
from pincompute.planning.snapshot import Native, Snapshot


class AttemptPlan(NamedTuple):
    """Native objects of the running attempt, and the pods to report on."""

    built: BuiltTemplate
    wanted: tuple[Object, ...] = ()
    retained_jobs: tuple[str, ...] = ()
    """Names of Jobs that continue unchanged."""
    pods: tuple[Pod, ...] = ()
    pods_to_diagnose: tuple[Pod, ...] = ()
    """Pods with a state that already tells of a problem."""
    retry_causes: Sequence[FailureCause] = ()
    """Cause of the last failure for each task that has failed and is being retried."""
    problems: tuple[Problem, ...] = ()
    change_problem: Problem | None = None
    """Problem of a Job that cannot be changed as requested."""
    update: InPlaceUpdate = InPlaceUpdate({})
    """In-place update of running pods to a newer runtime, which their Jobs never get."""
    updated_in_place: int = 0


def plan(snapshot: Snapshot) -> Plan:
    """Plan the objects of a batch."""
    if problems := _cost_problems(snapshot.owner):
        return _refused_plan(snapshot, problems)
    state = attempts.batch_state(snapshot)
    attempt = state.running_attempt
    planned = _plan_attempt(snapshot, state, attempt) if attempt else _finished_plan(snapshot, state)
    if attempt and not attempts.has_begun(snapshot, state, attempt):
        state = state.with_last_attempt(msgspec.structs.replace(attempt, runtime=planned.built.runtime))
    if planned.problems:
        return _refused_plan(snapshot, planned.problems)
    finding = _pod_finding(snapshot, state, planned)
    why = finding.problem or planned.change_problem or outcome.batch_problem(snapshot, state)
    wanted = (
        natives.service_account(snapshot),
        *natives.configuration_files(snapshot),
        *_retained_claims(snapshot),
        *planned.wanted,
        revision.revision_record(snapshot, planned.built, _pods_of_revision(snapshot, state)),
    )
    return Plan(
        wanted,
        _job_set_status(snapshot, state, planned, why),
        wake_after_s=soonest(_wake_after_s(snapshot, state, finding.recheck_after_s), planned.update.recheck_after_s),
        why=why,
        retained=(
            *revision.retained_revisions(snapshot),
            *(("Job", name) for name in planned.retained_jobs),
            *_retained_objects(snapshot, state),
        ),
        steps=planned.update.steps,
    )


def _refused_plan(snapshot: Snapshot, problems: tuple[Problem, ...]) -> Plan:
    refused = status.refused_plan(snapshot, problems)
    return refused._replace(status=msgspec.structs.replace(refused.status, revision=snapshot.owner.status.revision))


def _cost_problems(owner: PinterestJobSet) -> tuple[Problem, ...]:
    where = Where(object=owner.metadata.key)
    return tuple(Problem(DOCUMENT_INVALID, each.what, where, each.note, each.next) for each in owner.spec.cost_errors())


def _plan_attempt(snapshot: Snapshot, state: BatchState, attempt: AttemptStatus) -> AttemptPlan:
    """Plan the Jobs of the running attempt.

    A Job with other immutable fields, for instance because an earlier version of PinCompute created it, continues
    unchanged: recreating it would lose the work of its tasks.
    """
    owner = snapshot.owner
    begun = attempts.has_begun(snapshot, state, attempt)
    existing = attempts.find_jobs(snapshot, state, attempt.number)
    job_tasks = (
        attempts.runnable_tasks(snapshot, state, attempt)
        if attempts.has_job_per_task(snapshot, state, attempt)
        else [None]
    )
    templates = [jobs.build_job_template(snapshot, state, attempt, task, begun=begun) for task in job_tasks]
    wanted: dict[str, Object] = {}
    change_problem = None
    for task, built in zip(job_tasks, templates, strict=True):
        job = jobs.build_job(snapshot, state, attempt, built, task)
        name, annotations = job["metadata"]["name"], job["metadata"]["annotations"]
        before = existing.get(name)
        if before is None and built.problems:
            return AttemptPlan(built, problems=built.problems)
        if before is None or (
            not built.problems and _same_immutable_hash(before, annotations[IMMUTABLE_HASH_ANNOTATION])
        ):
            wanted[name] = job
        elif before.metadata.annotations.get(MUTABLE_HASH_ANNOTATION) != annotations[MUTABLE_HASH_ANNOTATION]:
            change_problem = outcome.job_cannot_change(snapshot, before)
    changes = _runtime_changes(snapshot, state, attempt, existing, job_tasks) if begun else []
    open_pods = attempts.pods_by_open_index(snapshot, existing)
    task_files = tasks.task_config_map(
        snapshot, sorted(parse_numbers(attempt.tasks)), names.tasks(owner, state.revision, attempt.number)
    )
    return AttemptPlan(
        built=templates[0] if templates and not templates[0].problems else _recorded_template(owner, attempt),
        wanted=(*task_files, *wanted.values()),
        retained_jobs=tuple(name for name in sorted(existing) if name not in wanted),
        pods=attempts.active_job_pods(snapshot, existing),
        pods_to_diagnose=tuple(pod for pods in open_pods for pod in retrying.pods_to_diagnose(pods)),
        retry_causes=attempts.retry_causes(open_pods) if owner.spec.retries else (),
        change_problem=change_problem,
        update=update_running_work(changes),
        updated_in_place=sum(len(each.updated) for each in changes),
    )


def _recorded_template(owner: PinterestJobSet, attempt: AttemptStatus) -> BuiltTemplate:
    """Runtime and parts as recorded, without a template."""
    return BuiltTemplate({}, attempt.runtime, tuple(owner.status.parts))


def _runtime_changes(
    snapshot: Snapshot,
    state: BatchState,
    attempt: AttemptStatus,
    existing: Mapping[str, Native],
    job_tasks: Sequence[int | None],
) -> list[TemplateChange]:
    """Changes from the templates that the pods have to those they would have if the attempt began now."""
    changes = []
    for task in job_tasks:
        built = jobs.build_job_template(snapshot, state, attempt, task, begun=False)
        name = jobs.job_name(snapshot, state, attempt, task)
        if name in existing and not built.problems and built.runtime != attempt.runtime:
            pods = attempts.active_job_pods(snapshot, [name])
            # Tasks serve no requests, so that only the roll limits how many are unavailable.
            changes.append(TemplateChange(snapshot, built, pods, len(pods), "100%"))
    return changes


def _same_immutable_hash(before: Native, immutable_hash: str) -> bool:
    return before.metadata.annotations.get(IMMUTABLE_HASH_ANNOTATION, immutable_hash) == immutable_hash


def _finished_plan(snapshot: Snapshot, state: BatchState) -> AttemptPlan:
    """All attempts have ended."""
    return AttemptPlan(_recorded_template(snapshot.owner, state.attempts[-1]))


def _pods_of_revision(snapshot: Snapshot, state: BatchState) -> tuple[Pod, ...]:
    """Pods to record the images of, including finished ones: a short one may never be seen running.

    A suspended batch has none.
    """
    job_names = () if snapshot.owner.spec.suspended else sorted(attempts.find_jobs(snapshot, state))
    return tuple(pod for name in job_names for pod in attempts.job_pods(snapshot, name))


def _pod_finding(snapshot: Snapshot, state: BatchState, planned: AttemptPlan) -> Finding:
    """Problem that keeps pods from running. A suspended batch has no pods, which is no problem."""
    spec: JobSetSpec = snapshot.owner.spec
    if state.running_attempt is None or spec.suspended:
        return Finding()
    return first_cause(snapshot, planned.pods_to_diagnose)


def _retained_claims(snapshot: Snapshot) -> list[Object]:
    """Claims that tasks keep from attempt to attempt."""
    spec: JobSetSpec = snapshot.owner.spec
    return [
        tasks.task_claim(snapshot, claim, names.task_claim(snapshot.owner, claim.name, task))
        for claim in spec.claims
        if claim.retained
        for task in range(spec.task_count)
    ]


def _retained_objects(snapshot: Snapshot, state: BatchState) -> list[tuple[str, str]]:
    """Kind and name of existing objects of finished attempts, until keepSeconds have passed."""
    existing = {(each.kind, each.metadata.name) for each in snapshot.natives}
    retained: list[tuple[str, str]] = []
    for attempt in state.attempts:
        if attempt.ended and _retention_left_s(snapshot, attempt) > 0:
            attempt_jobs = attempts.find_jobs(snapshot, state, attempt.number)
            # Jobs that still run belong to tasks that are not needed any more or exceeded the deadline: they end.
            retained += [("Job", name) for name, job in sorted(attempt_jobs.items()) if _has_stopped(job)]
            retained.append(("ConfigMap", names.tasks(snapshot.owner, state.revision, attempt.number)))
    return [each for each in retained if each in existing]


def _has_stopped(job: Native) -> bool:
    """Finished, or suspended by a cancellation: its pods have ended, and their logs are kept."""
    return attempts.is_finished(job) or attempts.is_suspended(job)


def _retention_left_s(snapshot: Snapshot, attempt: AttemptStatus) -> float:
    """Seconds for which objects of a finished attempt are still retained."""
    since_end_s = (snapshot.now - datetime.fromisoformat(attempt.ended)).total_seconds()
    return float(snapshot.owner.spec.keep_seconds) - since_end_s


def _wake_after_s(snapshot: Snapshot, state: BatchState, recheck_after_s: float | None) -> float | None:
    attempt = state.running_attempt
    delays = [recheck_after_s, _deadline_left_s(snapshot, state, attempt) if attempt else None]
    retentions = [
        _retention_left_s(snapshot, each)
        for each in state.attempts
        if each.ended and attempts.find_jobs(snapshot, state, each.number)
    ]
    return soonest(*(each for each in (*delays, *retentions) if each is not None and each > 0))


def _deadline_left_s(snapshot: Snapshot, state: BatchState, attempt: AttemptStatus) -> float | None:
    per_task = attempts.has_job_per_task(snapshot, state, attempt)
    return attempts.deadline_left_s(snapshot, attempt, per_task=per_task)


def _job_set_status(snapshot: Snapshot, state: BatchState, planned: AttemptPlan, why: Problem | None) -> JobSetStatus:
    spec: JobSetSpec = snapshot.owner.spec
    common = status.common_status(snapshot, planned.built, planned.pods, why)
    started = sum(pod.status.phase == "Running" for pod in planned.pods)
    return msgspec.structs.replace(
        msgspec.convert(common, JobSetStatus, from_attributes=True),
        revision=state.revision,
        runtime=state.attempts[-1].runtime,
        updated_in_place=planned.updated_in_place,
        progress=status.pod_progress(outcome.wanted_pod_count(snapshot, state), planned.pods),
        conditions=[outcome.batch_condition(snapshot, state, started, why, planned.retry_causes)],
        work=state.work_hash,
        tasks=spec.task_count,
        done=len(state.done),
        failed=len(state.failures),
        running=started,
        retrying=len(planned.retry_causes),
        completed=format_numbers(state.done),
        failures=group_failures(state.failures),
        attempts=list(state.attempts),
    )

"""Builds the Jobs of an attempt: one indexed Job, or a Job per task if tasks keep their claims."""

from __future__ import annotations

import msgspec

from pincompute.api.cancellation import cancelled_by
from pincompute.api.job_set import JobSetSpec, PinterestJobSet
from pincompute.api.job_set_status import AttemptStatus
from pincompute.api.names import (
    ATTEMPT_LABEL,
    MUTABLE_HASH_ANNOTATION,
    REVISION_ANNOTATION,
    RUNTIME_ANNOTATION,
    TASKS_ANNOTATION,
    WORK_HASH_ANNOTATION,
)
from pincompute.api.pod_template import main_container
from pincompute.api.status import Progress
from pincompute.objects.content import Object, content_hash
from pincompute.objects.number_sets import parse_numbers, scaled_value
from pincompute.planning import names, natives
from pincompute.planning.batch import tasks
from pincompute.planning.batch.attempts import BatchState
from pincompute.planning.pods import pod
from pincompute.planning.pods.pod import BuiltTemplate, PodOverlay
from pincompute.planning.snapshot import Snapshot

_STORAGE_GROUP_ID = 1000
"""Group that owns the files of a claim, so that any user of an image may write to it."""


def build_job_template(
    snapshot: Snapshot, state: BatchState, attempt: AttemptStatus, task: int | None = None, *, begun: bool
) -> BuiltTemplate:
    """Build the pod template of a Job. An attempt that has begun keeps its runtime."""
    owner = snapshot.owner
    recorded = msgspec.structs.replace(owner.status, runtime=attempt.runtime, progress=Progress() if begun else None)
    spec = _spec_of_attempt(owner.spec, attempt.number)
    attempt_owner = msgspec.structs.replace(owner, spec=spec, status=recorded)
    return pod.build_template(snapshot._replace(owner=attempt_owner), _job_overlay(snapshot, state, attempt, task))


def build_job(
    snapshot: Snapshot, state: BatchState, attempt: AttemptStatus, built: BuiltTemplate, task: int | None = None
) -> Object:
    """Build the Job of a whole attempt, or of one of its tasks."""
    owner = snapshot.owner
    mutable = _mutable_fields(owner.spec, attempt, single=task is not None)
    body = _indexed_job(owner, state, attempt) if task is None else _single_job(owner)
    annotations = {
        REVISION_ANNOTATION: str(state.revision),
        ATTEMPT_LABEL: str(attempt.number),
        TASKS_ANNOTATION: attempt.tasks,
        WORK_HASH_ANNOTATION: state.work_hash,
        MUTABLE_HASH_ANNOTATION: content_hash(mutable),
        RUNTIME_ANNOTATION: str(built.runtime),
    }
    spec = {"spec": {**body, **mutable, "template": built.template}}
    name = job_name(snapshot, state, attempt, task)
    return natives.build_native(snapshot, "batch/v1", "Job", spec, name=name, annotations=annotations)


def job_name(snapshot: Snapshot, state: BatchState, attempt: AttemptStatus, task: int | None = None) -> str:
    numbers = state.revision, attempt.number
    owner = snapshot.owner
    return names.job(owner, *numbers) if task is None else names.task_job(owner, *numbers, task)


def _indexed_job(owner: PinterestJobSet, state: BatchState, attempt: AttemptStatus) -> Object:
    """Spec with an index per task and retries per index, so that a failing task does not affect the others."""
    numbers = parse_numbers(attempt.tasks)
    body: Object = {
        "completions": len(numbers),
        "completionMode": "Indexed",
        "backoffLimitPerIndex": owner.spec.retries,
        "podFailurePolicy": _failure_policy(owner, "FailIndex"),
    }
    # Tasks done by former attempts count. Those done by this one do not: the field is immutable.
    missing = owner.spec.required_tasks - len(state.done - numbers)
    if 0 < missing < len(numbers):
        body["successPolicy"] = {"rules": [{"succeededCount": missing}]}
    return body


def _single_job(owner: PinterestJobSet) -> Object:
    return {
        "completions": 1,
        "backoffLimit": owner.spec.retries,
        "podFailurePolicy": _failure_policy(owner, "FailJob"),
    }


def _mutable_fields(spec: JobSetSpec, attempt: AttemptStatus, *, single: bool) -> Object:
    """Fields that may change while the Job runs.

    There is no ttlSecondsAfterFinished: the Job may be deleted only after its result is recorded in the status.
    """
    count = len(parse_numbers(attempt.tasks))
    fields: Object = {"suspend": bool(spec.suspended or cancelled_by(spec.cancelled, attempt.number))}
    if not single:
        fields["parallelism"] = min(spec.parallelism or count, count)
    if not single and spec.max_failed != "":
        fields["maxFailedIndexes"] = min(scaled_value(spec.max_failed, count, up=True), count)
    if spec.deadline_seconds:
        fields["activeDeadlineSeconds"] = spec.deadline_seconds
    return fields


def _failure_policy(owner: PinterestJobSet, fail_action: str) -> Object:
    """A disruption by the node or the platform is no retry; an exit code that is not worth a retry fails at once."""
    rules: list[Object] = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
    if owner.spec.retry_exit_codes:
        main = main_container(owner.spec.template, owner.metadata.name, own=bool(owner.spec.image)) or {}
        codes = {
            "containerName": main.get("name", owner.metadata.name),
            "operator": "NotIn",
            "values": sorted(set(owner.spec.retry_exit_codes)),
        }
        rules.append({"action": fail_action, "onExitCodes": codes})
    return {"rules": rules}


def _spec_of_attempt(spec: JobSetSpec, number: int) -> JobSetSpec:
    """Spec with the resources that a rerun overrides."""
    if number == 1:
        return spec
    attempt = spec.attempts[number - 2]
    return msgspec.structs.replace(spec, cpu=attempt.cpu or spec.cpu, memory=attempt.memory or spec.memory)


def _job_overlay(snapshot: Snapshot, state: BatchState, attempt: AttemptStatus, task: int | None) -> PodOverlay:
    owner = snapshot.owner
    spec: JobSetSpec = owner.spec
    numbers = sorted(parse_numbers(attempt.tasks))
    config_map = names.tasks(owner, state.revision, attempt.number)
    deadline = {"activeDeadlineSeconds": spec.task_deadline_seconds} if spec.task_deadline_seconds else {}
    group = {"securityContext": {"fsGroup": _STORAGE_GROUP_ID, "fsGroupChangePolicy": "OnRootMismatch"}}
    return PodOverlay(
        pod={"restartPolicy": "Never", **deadline},
        defaults=group if spec.claims else {},
        environment=tasks.task_variables(spec, numbers, attempt.number, task),
        volumes=[*tasks.task_volumes(spec, numbers, config_map), *_claim_volumes(snapshot, task)],
        mounts=[
            *tasks.task_mounts(spec, numbers, task),
            *({"name": each.name, "mountPath": each.path} for each in spec.claims),
        ],
        labels={ATTEMPT_LABEL: str(attempt.number)},
    )


def _claim_volumes(snapshot: Snapshot, task: int | None) -> list[Object]:
    """Volumes of claims: the task's own claim if it is retained, otherwise an ephemeral one of the pod."""
    owner = snapshot.owner
    return [
        {"name": each.name, "persistentVolumeClaim": {"claimName": names.task_claim(owner, each.name, task)}}
        if each.retained and task is not None
        else {
            "name": each.name,
            "ephemeral": {
                "volumeClaimTemplate": {
                    "metadata": {"labels": natives.tracking_labels(owner)}, "spec": tasks.task_claim_spec(each)
                }
            },
        }
        for each in owner.spec.claims
    ]  # fmt: skip

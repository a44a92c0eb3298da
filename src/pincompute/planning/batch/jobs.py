"""The Jobs of an attempt: one with an index for each task, or one for each task whose claims outlive it."""

from __future__ import annotations

import msgspec

from pincompute.api.job_set import JobSetSpec, PinterestJobSet
from pincompute.api.job_set_status import AttemptStatus
from pincompute.api.names import ATTEMPT, PACE, REVISION, RUNTIME, TASKS, WORK
from pincompute.api.pod import main_container
from pincompute.api.status import Progress
from pincompute.objects.content import Object, digest
from pincompute.objects.numbers import parse, share_of
from pincompute.planning import names, natives
from pincompute.planning.batch import tasks
from pincompute.planning.batch.attempts import Course
from pincompute.planning.pods import pod
from pincompute.planning.pods.pod import Made, Shape
from pincompute.planning.snapshot import Snapshot

_GROUP = 1000
"""Owns the files of a claim, so that whoever the image runs as can write there."""


def made(snapshot: Snapshot, found: Course, record: AttemptStatus, task: int | None = None, *, begun: bool) -> Made:
    """The template of its pods; what has begun goes on with the runtime that it began with."""
    owner = snapshot.owner
    remembered = msgspec.structs.replace(owner.status, runtime=record.runtime, progress=Progress() if begun else None)
    spec = _given(owner.spec, record.number)
    this = msgspec.structs.replace(owner, spec=spec, status=remembered)
    return pod.make(snapshot._replace(owner=this), _shape(snapshot, found, record, task))


def job(snapshot: Snapshot, found: Course, record: AttemptStatus, made: Made, task: int | None = None) -> Object:
    """Of the whole attempt, or of one task of it."""
    owner = snapshot.owner
    pace = _pace(owner.spec, len(parse(record.tasks)), apart=task is not None)
    body = _indexed(owner, found, record) if task is None else _single(owner)
    annotations = {
        REVISION: str(found.revision),
        ATTEMPT: str(record.number),
        TASKS: record.tasks,
        WORK: found.work,
        PACE: digest(pace),
        RUNTIME: str(made.runtime),
    }
    spec = {"spec": {**body, **pace, "template": made.template}}
    name = called(snapshot, found, record, task)
    return natives.native(snapshot, "batch/v1", "Job", spec, name=name, annotations=annotations)


def called(snapshot: Snapshot, found: Course, record: AttemptStatus, task: int | None = None) -> str:
    number = found.revision, record.number
    owner = snapshot.owner
    return names.job(owner, *number) if task is None else names.task_job(owner, *number, task)


def _indexed(owner: PinterestJobSet, found: Course, record: AttemptStatus) -> Object:
    """A place for each task; what fails in one place leaves the others alone."""
    numbers = parse(record.tasks)
    body: Object = {
        "completions": len(numbers),
        "completionMode": "Indexed",
        "backoffLimitPerIndex": owner.spec.retries,
        "podFailurePolicy": _failure_policy(owner, "FailIndex"),
    }
    # What was done before this attempt counts; what it does itself must not change what it was made with.
    missing = owner.spec.needed - len(found.done - numbers)
    if 0 < missing < len(numbers):
        body["successPolicy"] = {"rules": [{"succeededCount": missing}]}
    return body


def _single(owner: PinterestJobSet) -> Object:
    return {
        "completions": 1,
        "backoffLimit": owner.spec.retries,
        "podFailurePolicy": _failure_policy(owner, "FailJob"),
    }


def _pace(spec: JobSetSpec, count: int, *, apart: bool) -> Object:
    """What may change while it runs. How long it is kept is ours to count: it is removed once it is remembered."""
    pace: Object = {"suspend": bool(spec.suspended)}
    if not apart:
        pace["parallelism"] = min(spec.parallelism or count, count)
    if not apart and spec.max_failed != "":
        pace["maxFailedIndexes"] = min(share_of(spec.max_failed, count, up=True), count)
    if spec.deadline_seconds:
        pace["activeDeadlineSeconds"] = spec.deadline_seconds
    return pace


def _failure_policy(owner: PinterestJobSet, give_up: str) -> Object:
    """What a node or the platform ended is nobody's fault; what is not worth a retry is not tried again."""
    rules: list[Object] = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
    if owner.spec.retry_exit_codes:
        main = main_container(owner.spec.template, owner.metadata.name, own=bool(owner.spec.image)) or {}
        codes = {
            "containerName": main.get("name", owner.metadata.name),
            "operator": "NotIn",
            "values": sorted(set(owner.spec.retry_exit_codes)),
        }
        rules.append({"action": give_up, "onExitCodes": codes})
    return {"rules": rules}


def _given(spec: JobSetSpec, number: int) -> JobSetSpec:
    """With what this attempt has other than the first."""
    if number == 1:
        return spec
    attempt = spec.attempts[number - 2]
    return msgspec.structs.replace(spec, cpu=attempt.cpu or spec.cpu, memory=attempt.memory or spec.memory)


def _shape(snapshot: Snapshot, found: Course, record: AttemptStatus, task: int | None) -> Shape:
    owner = snapshot.owner
    spec: JobSetSpec = owner.spec
    numbers = sorted(parse(record.tasks))
    told = names.tasks(owner, found.revision, record.number)
    limit = {"activeDeadlineSeconds": spec.task_deadline_seconds} if spec.task_deadline_seconds else {}
    group = {"securityContext": {"fsGroup": _GROUP, "fsGroupChangePolicy": "OnRootMismatch"}}
    return Shape(
        pod={"restartPolicy": "Never", **limit},
        defaults=group if spec.claims else {},
        environment=tasks.variables(spec, numbers, record.number, task),
        volumes=[*tasks.volumes(spec, numbers, told), *_storage(snapshot, task)],
        mounts=[
            *tasks.mounts(spec, numbers, task),
            *({"name": each.name, "mountPath": each.path} for each in spec.claims),
        ],
        labels={ATTEMPT: str(record.number)},
    )


def _storage(snapshot: Snapshot, task: int | None) -> list[Object]:
    """Made with the pod and gone with it, or the task's own from attempt to attempt."""
    owner = snapshot.owner
    return [
        {"name": each.name, "persistentVolumeClaim": {"claimName": names.task_claim(owner, each.name, task)}}
        if each.retained and task is not None
        else {
            "name": each.name,
            "ephemeral": {
                "volumeClaimTemplate": {
                    "metadata": {"labels": natives.labels(owner)}, "spec": tasks.claim_spec(each)
                }
            },
        }
        for each in owner.spec.claims
    ]  # fmt: skip

"""Input of a task: its number and its item, as environment variables and as files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pincompute.api.job_set import ITEM_FILE, NUMBER_FILE, JobSetSpec
from pincompute.api.task import TaskClaim
from pincompute.objects.content import Object
from pincompute.planning import natives
from pincompute.planning.snapshot import Snapshot

_INPUT_VOLUME = "task"
"""Name of the volume with the input files of all tasks."""
_INDEX = "$(JOB_COMPLETION_INDEX)"
_INDEX_FIELD = "metadata.annotations['batch.kubernetes.io/job-completion-index']"


def indexes_are_tasks(spec: JobSetSpec, tasks: Sequence[int]) -> bool:
    """True if the index in the Job is the number of the task, so that no file has to map one to the other."""
    return not spec.has_retained_claims and list(tasks) == list(range(len(tasks)))


def task_variables(spec: JobSetSpec, tasks: Sequence[int], attempt: int, task: int | None) -> list[Object]:
    """Environment variables. If index and number differ, the number is in a file only: no fieldRef can map it."""
    variables: list[Object] = [
        {"name": "PIN_TASKS", "value": str(spec.task_count)},
        {"name": "PIN_ATTEMPT", "value": str(attempt)},
        {"name": "PIN_TASK_PATH", "value": spec.task_path},
    ]
    if task is not None:
        variables.append({"name": "PIN_TASK", "value": str(task)})
    elif indexes_are_tasks(spec, tasks):
        variables.append({"name": "PIN_TASK", "valueFrom": {"fieldRef": {"fieldPath": _INDEX_FIELD}}})
    return variables


def task_config_map(snapshot: Snapshot, tasks: Sequence[int], name: str) -> tuple[Object, ...]:
    """ConfigMap with the input files of all tasks of an attempt. Keys start with the index of the task."""
    spec: JobSetSpec = snapshot.owner.spec
    with_number = not indexes_are_tasks(spec, tasks)
    data = {
        f"{index}.{file}": content
        for index, task in enumerate(tasks)
        for file, content in _input_files(spec, task, with_number=with_number).items()
    }
    return (natives.build_native(snapshot, "v1", "ConfigMap", {"data": data}, name=name),) if data else ()


def task_volumes(spec: JobSetSpec, tasks: Sequence[int], name: str) -> list[Object]:
    result: list[Object] = []
    if indexes_are_tasks(spec, tasks):
        result.append(
            {
                "name": NUMBER_FILE,
                "downwardAPI": {"items": [{"path": NUMBER_FILE, "fieldRef": {"fieldPath": _INDEX_FIELD}}]},
            }
        )
    if _input_files(spec, tasks[0], with_number=not indexes_are_tasks(spec, tasks)):
        result.append({"name": _INPUT_VOLUME, "configMap": {"name": name}})
    return result


def task_mounts(spec: JobSetSpec, tasks: Sequence[int], task: int | None) -> list[Object]:
    """Mounts of single files, because one directory cannot be the mount point of two volumes."""
    result: list[Object] = []
    if indexes_are_tasks(spec, tasks):
        result.append(
            {
                "name": NUMBER_FILE,
                "mountPath": f"{spec.task_path}/{NUMBER_FILE}",
                "subPath": NUMBER_FILE,
                "readOnly": True,
            }
        )
    index, field = (_INDEX, "subPathExpr") if task is None else (str(tasks.index(task)), "subPath")
    result += [
        {"name": _INPUT_VOLUME, "mountPath": f"{spec.task_path}/{file}", field: f"{index}.{file}", "readOnly": True}
        for file in _input_files(spec, tasks[0], with_number=not indexes_are_tasks(spec, tasks))
    ]
    return result


def task_claim(snapshot: Snapshot, claim: TaskClaim, name: str) -> Object:
    """Claim that outlives the task."""
    return natives.build_native(snapshot, "v1", "PersistentVolumeClaim", {"spec": task_claim_spec(claim)}, name=name)


def task_claim_spec(claim: TaskClaim) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": claim.size}},
        "volumeMode": "Filesystem",
    }
    return {**spec, "storageClassName": claim.class_} if claim.class_ else spec


def _input_files(spec: JobSetSpec, task: int, *, with_number: bool) -> dict[str, str]:
    item = spec.items[task] if spec.items else ""
    files = {NUMBER_FILE: str(task)} if with_number else {}
    if spec.items:
        files[ITEM_FILE] = item
    for file, content in sorted(spec.task_configuration.items()):
        # The item is inserted last, so that placeholders in its own text stay as they are.
        numbered = content.replace("$(PIN_TASK)", str(task)).replace("$(PIN_TASKS)", str(spec.task_count))
        files[file] = numbered.replace("$(PIN_ITEM)", item)
    return files

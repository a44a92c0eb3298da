"""What each task is told: its number and its part of the work, as variables and as files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pincompute.api.job_set import ITEM, NUMBER, JobSetSpec
from pincompute.api.task import TaskClaim
from pincompute.objects.content import Object
from pincompute.planning import natives
from pincompute.planning.snapshot import Snapshot

_TOLD = "task"
"""The volume that holds what each task is told, a file by file."""
_INDEX = "$(JOB_COMPLETION_INDEX)"
_PLACE = "metadata.annotations['batch.kubernetes.io/job-completion-index']"


def counted(spec: JobSetSpec, tasks: Sequence[int]) -> bool:
    """Whether a task's place among those of its Job is its number, so that nothing needs to be looked up."""
    return not spec.retained and list(tasks) == list(range(len(tasks)))


def variables(spec: JobSetSpec, tasks: Sequence[int], attempt: int, task: int | None) -> list[Object]:
    """A chosen few have no variable for their number: Kubernetes cannot say it, only the file can."""
    said: list[Object] = [
        {"name": "PIN_TASKS", "value": str(spec.count)},
        {"name": "PIN_ATTEMPT", "value": str(attempt)},
        {"name": "PIN_TASK_PATH", "value": spec.task_path},
    ]
    if task is not None:
        said.append({"name": "PIN_TASK", "value": str(task)})
    elif counted(spec, tasks):
        said.append({"name": "PIN_TASK", "valueFrom": {"fieldRef": {"fieldPath": _PLACE}}})
    return said


def config_map(snapshot: Snapshot, tasks: Sequence[int], name: str) -> tuple[Object, ...]:
    """The files of all tasks of an attempt, each under its place in it."""
    spec: JobSetSpec = snapshot.owner.spec
    looked_up = not counted(spec, tasks)
    data = {
        f"{place}.{file}": content
        for place, task in enumerate(tasks)
        for file, content in _files(spec, task, looked_up=looked_up).items()
    }
    return (natives.native(snapshot, "v1", "ConfigMap", {"data": data}, name=name),) if data else ()


def volumes(spec: JobSetSpec, tasks: Sequence[int], name: str) -> list[Object]:
    found: list[Object] = []
    if counted(spec, tasks):
        found.append({"name": NUMBER, "downwardAPI": {"items": [{"path": NUMBER, "fieldRef": {"fieldPath": _PLACE}}]}})
    if _files(spec, tasks[0], looked_up=not counted(spec, tasks)):
        found.append({"name": _TOLD, "configMap": {"name": name}})
    return found


def mounts(spec: JobSetSpec, tasks: Sequence[int], task: int | None) -> list[Object]:
    """Each file by itself: one folder cannot be two volumes."""
    found: list[Object] = []
    if counted(spec, tasks):
        found.append({"name": NUMBER, "mountPath": f"{spec.task_path}/{NUMBER}", "subPath": NUMBER, "readOnly": True})
    place, field = (_INDEX, "subPathExpr") if task is None else (str(tasks.index(task)), "subPath")
    found += [
        {"name": _TOLD, "mountPath": f"{spec.task_path}/{file}", field: f"{place}.{file}", "readOnly": True}
        for file in _files(spec, tasks[0], looked_up=not counted(spec, tasks))
    ]
    return found


def claim(snapshot: Snapshot, asked: TaskClaim, name: str) -> Object:
    """One that outlives the task."""
    return natives.native(snapshot, "v1", "PersistentVolumeClaim", {"spec": claim_spec(asked)}, name=name)


def claim_spec(asked: TaskClaim) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": asked.size}},
        "volumeMode": "Filesystem",
    }
    return {**spec, "storageClassName": asked.class_} if asked.class_ else spec


def _files(spec: JobSetSpec, task: int, *, looked_up: bool) -> dict[str, str]:
    item = spec.items[task] if spec.items else ""
    told = {NUMBER: str(task)} if looked_up else {}
    if spec.items:
        told[ITEM] = item
    for file, content in sorted(spec.task_configuration.items()):
        # The item comes last: what a person wrote into it is nobody's to replace.
        counted_in = content.replace("$(PIN_TASK)", str(task)).replace("$(PIN_TASKS)", str(spec.count))
        told[file] = counted_in.replace("$(PIN_ITEM)", item)
    return told

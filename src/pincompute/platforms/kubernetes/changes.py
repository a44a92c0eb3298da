"""Applies a change to a workload with optimistic concurrency: read, edit, write only if nothing else was edited."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from pincompute.api.change import Break, Change, Heal, Rollback
from pincompute.api.custom_resource import CustomResource
from pincompute.api.names import SUBMISSION_ANNOTATION
from pincompute.api.structs import without_defaults
from pincompute.api.workload import Workload
from pincompute.api.workload_detail import ChangeResult
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import CONFLICT
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.client import Client
from pincompute.kube.errors import Conflict
from pincompute.objects.content import Object
from pincompute.planning.edits import EditResult, apply_change, summarize_edit
from pincompute.planning.views.history import read_history
from pincompute.platforms.kubernetes.cluster_reader import list_revision_records

MAX_WRITE_ATTEMPTS = 10
"""The operator writes the status all the time, which makes a write conflict although nothing was edited."""
_NEEDS_HISTORY = Rollback | Break | Heal


class AppliedChange(NamedTuple):
    """A change as the user reads it, and the workload after it."""

    result: ChangeResult
    workload: Workload


async def write_change(
    client: Client, workload: Workload, change: Change, *, manager: str, submission: str
) -> ChangeResult:
    """Applies a change and returns its effects as text."""
    return (await write_change_to_workload(client, workload, change, manager=manager, submission=submission)).result


async def write_change_to_workload(
    client: Client, workload: Workload, change: Change, *, manager: str, submission: str
) -> AppliedChange:
    """The same, with the workload as written. The id of the submission is stored as an annotation.

    By this annotation a desk that lost the response finds out that its change was already applied.
    """
    edit = await preview_change(client, workload, change)
    if edit.workload is workload:
        return AppliedChange(
            ChangeResult(summary=summarize_edit(workload), messages=list(edit.effects), written=False), workload
        )
    metadata = edit.workload.metadata
    annotations = {**metadata.annotations, SUBMISSION_ANNOTATION: submission} if submission else metadata.annotations
    wanted = msgspec.structs.replace(edit.workload, metadata=msgspec.structs.replace(metadata, annotations=annotations))
    written = await _write_unless_edited(client, workload, wanted, manager)
    return AppliedChange(ChangeResult(summary=summarize_edit(written), messages=list(edit.effects)), written)


async def preview_change(client: Client, workload: Workload, change: Change) -> EditResult:
    """The workload after a change, without writing it."""
    history = (
        read_history(workload, await list_revision_records(client, workload))
        if isinstance(change, _NEEDS_HISTORY)
        else ()
    )
    return apply_change(workload, change, history)


async def _write_unless_edited(client: Client, before: Workload, wanted: Workload, manager: str) -> Workload:
    """Retries conflicts with the status; refuses if the spec or the annotations were edited since."""
    read = before
    for _ in range(MAX_WRITE_ATTEMPTS):
        try:
            return await _write_revision(client, read, wanted, manager)
        except Conflict:
            read = await _reread(client, before)
            if _edit_fingerprint(read) != _edit_fingerprint(before):
                break
    what = f"{before.metadata.name} was changed by another writer in the meantime; nothing was written"
    where = Where(object=before.metadata.key)
    raise Refused(Problem(CONFLICT, what, where, next=f"pin show {before.metadata.name}"))


def _edit_fingerprint(workload: Workload) -> tuple[str, int, dict[str, str]]:
    """Changes with every edit, but not with the status."""
    metadata = workload.metadata
    return metadata.uid, metadata.generation, metadata.annotations


async def _reread(client: Client, workload: Workload) -> Workload:
    metadata = workload.metadata
    return msgspec.convert(
        await client.get(CUSTOM_RESOURCES[workload.kind], metadata.name, metadata.namespace), type(workload)
    )


async def _write_revision(client: Client, read: Workload, wanted: Workload, manager: str) -> Workload:
    """Writes only if the revision that was read is still the current one.

    An apply keeps fields that it leaves out if another manager, or the POST that created the workload, has set them. A
    change means the whole spec, so that one which removes a field replaces the spec: in one request, because a mixture
    of both specs could be invalid, and would be a revision that nobody asked for.
    """
    resource = CUSTOM_RESOURCES[wanted.kind]
    metadata = wanted.metadata
    if not _removes_fields(without_defaults(read.spec), without_defaults(wanted.spec)):
        written = await client.apply(manifest_of(wanted, read.metadata.resource_version), resource, manager=manager)
        return msgspec.convert(written, type(wanted))
    body = [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": read.metadata.resource_version},
        {"op": "add", "path": "/metadata/annotations", "value": metadata.annotations},
        {"op": "replace", "path": "/spec", "value": without_defaults(wanted.spec)},
    ]
    patched = await client.patch(resource, metadata.name, metadata.namespace, body, style="json", manager=manager)
    return msgspec.convert(patched, type(wanted))


def _removes_fields(before: Any, after: Any) -> bool:
    """True if a field is missing afterwards, also below another one. Entries of changed lists may be missing."""
    if isinstance(before, dict) and isinstance(after, dict):
        return any(name not in after or _removes_fields(value, after[name]) for name, value in before.items())
    return isinstance(before, list) and before != after


def manifest_of(workload: CustomResource, resource_version: str = "") -> Object:
    """The JSON that is applied. With a resourceVersion the API server accepts it only if that is still current."""
    metadata = workload.metadata
    precondition = {"resourceVersion": resource_version, "uid": metadata.uid} if resource_version else {}
    return {
        "apiVersion": workload.apiVersion,
        "kind": workload.kind,
        "metadata": {
            "name": metadata.name,
            "namespace": metadata.namespace,
            "labels": metadata.labels,
            "annotations": metadata.annotations,
            **precondition,
        },
        "spec": without_defaults(workload.spec),
    }


def created_by_another_problem(workload: Workload) -> Problem:
    name = workload.metadata.name
    what = f"{name} was created by another client in the meantime; nothing was written"
    next_ = f"pin show {name}, then deploy your file again to overwrite it"
    return Problem(CONFLICT, what, Where(object=workload.metadata.key), next=next_)


def recreated_problem(project: str, name: str) -> Problem:
    """Refuses a delete by uid, because the name belongs to another workload by now."""
    what = f"{name} was deleted and recreated in the meantime; the new one was not touched"
    next_ = f"pin show {name}, then to delete the new one: pin delete {name}"
    return Problem(CONFLICT, what, Where(object=f"{project}/{name}"), next=next_)

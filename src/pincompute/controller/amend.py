"""Make an edit so: read, edited, and written only if nobody else has changed it meanwhile."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from pincompute.api.account import Changed
from pincompute.api.change import Break, Change, Heal, Rollback
from pincompute.api.names import SUBMISSION
from pincompute.api.wire import spoken
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import CHANGED_MEANWHILE
from pincompute.controller.gather import records
from pincompute.controller.resources import NOUNS
from pincompute.kube.client import Client
from pincompute.kube.errors import Conflict
from pincompute.objects.content import Object
from pincompute.planning.people.edits import Edit, edit, summarized
from pincompute.planning.people.history import history

ATTEMPTS = 10
"""Writes of an object whose status moves while it is edited."""
_LOOKS_BACK = Rollback | Break | Heal


class Amended(NamedTuple):
    told: Changed
    workload: Workload
    """As it is by now."""


async def amend(client: Client, workload: Workload, change: Change, *, manager: str, submission: str) -> Changed:
    """What it did, in words."""
    return (await amended(client, workload, change, manager=manager, submission=submission)).told


async def amended(client: Client, workload: Workload, change: Change, *, manager: str, submission: str) -> Amended:
    """A desk's submission is noted on what it wrote."""
    done = await foresee(client, workload, change)
    if done.workload is workload:
        return Amended(Changed(summary=summarized(workload), said=list(done.said), written=False), workload)
    metadata = done.workload.metadata
    noted = {**metadata.annotations, SUBMISSION: submission} if submission else metadata.annotations
    wanted = msgspec.structs.replace(done.workload, metadata=msgspec.structs.replace(metadata, annotations=noted))
    written = await _fenced(client, workload, wanted, manager)
    return Amended(Changed(summary=summarized(written), said=list(done.said)), written)


async def foresee(client: Client, workload: Workload, change: Change) -> Edit:
    """What it would make of it."""
    past = history(workload, await records(client, workload)) if isinstance(change, _LOOKS_BACK) else ()
    return edit(workload, change, past)


async def _fenced(client: Client, before: Workload, wanted: Workload, manager: str) -> Workload:
    """A status that moved is no edit; a spec that moved is somebody's."""
    read = before
    for _ in range(ATTEMPTS):
        try:
            return await _write(client, read, wanted, manager)
        except Conflict:
            read = await _again(client, before)
            if _edited(read) != _edited(before):
                break
    what = f"somebody else changed {before.metadata.name} just now, and nothing was written"
    where = Where(object=before.metadata.place)
    raise Refused(Problem(CHANGED_MEANWHILE, what, where, next=f"pin show {before.metadata.name}"))


def _edited(workload: Workload) -> tuple[str, int, dict[str, str]]:
    metadata = workload.metadata
    return metadata.uid, metadata.generation, metadata.annotations


async def _again(client: Client, workload: Workload) -> Workload:
    metadata = workload.metadata
    return msgspec.convert(await client.get(NOUNS[workload.kind], metadata.name, metadata.namespace), type(workload))


async def _write(client: Client, read: Workload, wanted: Workload, manager: str) -> Workload:
    resource = NOUNS[wanted.kind]
    written = await client.apply(resource_of(wanted, read.metadata.resource_version), resource, manager=manager)
    found = msgspec.convert(written, type(wanted))
    if spoken(found.spec) == spoken(wanted.spec):
        return found
    # An apply leaves alone what somebody else has written; an edit means the whole.
    revision = found.metadata.resource_version
    body = [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": revision},
        {"op": "replace", "path": "/spec", "value": msgspec.to_builtins(wanted.spec)},
    ]
    metadata = wanted.metadata
    patched = await client.patch(resource, metadata.name, metadata.namespace, body, style="json", manager=manager)
    return msgspec.convert(patched, type(wanted))


def resource_of(workload: Workload, revision: str = "") -> Object:
    """What is applied; with a revision, only where that is still the present one."""
    metadata = workload.metadata
    fence = {"resourceVersion": revision, "uid": metadata.uid} if revision else {}
    return {
        "apiVersion": workload.apiVersion,
        "kind": workload.kind,
        "metadata": {
            "name": metadata.name,
            "namespace": metadata.namespace,
            "labels": metadata.labels,
            "annotations": metadata.annotations,
            **fence,
        },
        "spec": spoken(workload.spec),
    }

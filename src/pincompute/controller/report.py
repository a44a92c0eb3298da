"""What a pass says of its owner: one status, written only where it says anything new."""

from __future__ import annotations

from typing import Any

import msgspec

from pincompute.api.names import API_VERSION, OPERATOR
from pincompute.api.noun import Noun
from pincompute.api.status import SUCCEEDED, Report, condition
from pincompute.api.wire import Metadata
from pincompute.base.problem import Problem
from pincompute.controller.resources import NOUNS
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.objects.content import Object


async def report(client: Client, owner: Noun, status: Report) -> Object | None:
    """The owner as it is after; nothing where it is gone.

    Fenced by the very revision that was seen: what was planned by an older one is not told of a newer one.
    """
    return await write(client, owner.kind, owner.metadata, _spelled(status))


async def write(client: Client, kind: str, seen: Metadata, status: Object) -> Object | None:
    body: Object = {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {
            "name": seen.name,
            "namespace": seen.namespace,
            "uid": seen.uid,
            "resourceVersion": seen.resource_version,
        },
        "status": status,
    }
    try:
        return await client.apply(body, NOUNS[kind], manager=OPERATOR, subresource="status")
    except NotFound:
        # Deleted in between: nobody is left to report to.
        return None


def _spelled(status: Report) -> Object:
    """With its zeros where an object has nothing else: Kubernetes would make null of one that loses all its fields."""
    body: Object = msgspec.to_builtins(status)
    for field in msgspec.structs.fields(status):
        if body.get(field.encode_name) == {}:
            value: Any = getattr(status, field.name)
            zeros = {each.encode_name: getattr(value, each.name) for each in msgspec.structs.fields(value)}
            body[field.encode_name] = zeros
    return body


def blocked(owner: Any, status: Report, problem: Problem) -> Report:
    """What stands in the way of writing is told before what is merely slow. Work that ends has not ended by that."""
    word = "Unknown" if owner.GOAL == SUCCEEDED else "False"
    before = condition(owner.status.conditions, owner.GOAL)
    conditions = [
        msgspec.structs.replace(
            each,
            status=word,
            reason=problem.reason.code,
            message=problem.message(),
            # By what was told, not by what would be: else each pass would write another time.
            last_transition_time=before.last_transition_time
            if before and before.status == word
            else each.last_transition_time,
        )
        if each.type == owner.GOAL
        else each
        for each in status.conditions
    ]
    return msgspec.structs.replace(status, next=problem.next, conditions=conditions)

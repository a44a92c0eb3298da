"""What a pass says of its owner: one status, written only where it says anything new."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

import msgspec

from pincompute.api.kinds import KINDS
from pincompute.api.names import API_VERSION, OPERATOR
from pincompute.api.noun import Noun
from pincompute.api.status import READY, SUCCEEDED, Report, condition
from pincompute.api.wire import Metadata
from pincompute.base.problem import Problem
from pincompute.controller.resources import NOUNS
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.objects.content import Object
from pincompute.objects.times import stamp


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


def unreadable(kind: str, generation: int, before: Object, problem: Problem, now: datetime) -> Object:
    """All that it says stays, but for whether it is as wanted: nobody knows what is wanted."""
    goal: str = getattr(KINDS[kind], "GOAL", READY)
    others = [each for each in before.get("conditions", ()) if each.get("type") != goal]
    was = next((each for each in before.get("conditions", ()) if each.get("type") == goal), {})
    same = was.get("status") == "Unknown"
    condition: Object = {
        "type": goal,
        "status": "Unknown",
        "reason": problem.reason.code,
        "message": problem.message()[:4096],
        "lastTransitionTime": was.get("lastTransitionTime") if same else stamp(now),
        "observedGeneration": generation,
    }
    return {**before, "next": problem.next, "conditions": [condition, *others]}


def _spelled(status: Report) -> Object:
    """With its zeros where an object has nothing else: Kubernetes would make null of one that loses all its fields."""
    body: Object = msgspec.to_builtins(status)
    for name, spelled in _fields(type(status)):
        if body.get(spelled) == {}:
            value: Any = getattr(status, name)
            body[spelled] = {each: getattr(value, field) for field, each in _fields(type(value))}
    return body


@cache
def _fields(kind: type[Any]) -> tuple[tuple[str, str], ...]:
    """Each as we call it, and as it is spelled."""
    return tuple((each.name, each.encode_name) for each in msgspec.structs.fields(kind))


def blocked(owner: Any, status: Report, problem: Problem) -> Report:
    """What stands in the way of writing is told before what is merely slow. Work that ends has not ended by that."""
    if getattr(status, "ended", ""):
        # What came of it is remembered by this very condition.
        return status
    goal = getattr(owner, "GOAL", READY)
    word = "Unknown" if goal == SUCCEEDED else "False"
    before = condition(owner.status.conditions, goal)
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
        if each.type == goal
        else each
        for each in status.conditions
    ]
    return msgspec.structs.replace(status, next=problem.next, conditions=conditions)

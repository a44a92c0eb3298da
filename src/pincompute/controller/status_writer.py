"""Writes the status of an owner at the end of a pass, and composes the statuses that no planner can."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

import msgspec

from pincompute.api.custom_resource import CustomResource
from pincompute.api.kinds import KINDS
from pincompute.api.names import API_VERSION, OPERATOR
from pincompute.api.status import READY, SUCCEEDED, ResourceStatus, find_condition
from pincompute.api.structs import Metadata
from pincompute.base.problem import Problem
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.objects.content import Object
from pincompute.objects.times import format_time

MAX_MESSAGE_CHARS = 4096


async def write_status(client: Client, owner: CustomResource, status: ResourceStatus) -> Object | None:
    """Applies a status; returns the owner as written, or None if it no longer exists.

    The resourceVersion of the snapshot is the precondition: a status planned from an older owner never overwrites
    that of a newer one.
    """
    return await apply_status(client, owner.kind, owner.metadata, _with_empty_objects(status))


async def apply_status(client: Client, kind: str, metadata: Metadata, status: Object) -> Object | None:
    """The same for a status that is already JSON."""
    body: Object = {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {
            "name": metadata.name,
            "namespace": metadata.namespace,
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version,
        },
        "status": status,
    }
    try:
        return await client.apply(body, CUSTOM_RESOURCES[kind], manager=OPERATOR, subresource="status")
    except NotFound:
        # The owner was deleted in between; there is nothing left to report on.
        return None


def undecodable_status(kind: str, generation: int, before: Object, problem: Problem, now: datetime) -> Object:
    """The previous status with its main condition set to Unknown, for an owner with an undecodable spec."""
    goal: str = getattr(KINDS[kind], "GOAL", READY)
    others = [each for each in before.get("conditions", ()) if each.get("type") != goal]
    previous = next((each for each in before.get("conditions", ()) if each.get("type") == goal), {})
    was_unknown = previous.get("status") == "Unknown"
    condition: Object = {
        "type": goal,
        "status": "Unknown",
        "reason": problem.reason.code,
        "message": problem.message()[:MAX_MESSAGE_CHARS],
        "lastTransitionTime": previous.get("lastTransitionTime") if was_unknown else format_time(now),
        "observedGeneration": generation,
    }
    return {**before, "next": problem.next, "conditions": [condition, *others]}


def _with_empty_objects(status: ResourceStatus) -> Object:
    """The status as JSON, with the zero values of objects that hold nothing else.

    Default values are not encoded. An object that loses all its fields in an apply becomes null, which our schema
    rejects.
    """
    body: Object = msgspec.to_builtins(status)
    for name, json_name in _json_fields(type(status)):
        if body.get(json_name) == {}:
            value: Any = getattr(status, name)
            body[json_name] = {each: getattr(value, field) for field, each in _json_fields(type(value))}
    return body


@cache
def _json_fields(kind: type[Any]) -> tuple[tuple[str, str], ...]:
    """The attribute and JSON names of a struct's fields."""
    return tuple((each.name, each.encode_name) for each in msgspec.structs.fields(kind))


def blocked_status(owner: Any, status: ResourceStatus, problem: Problem) -> ResourceStatus:
    """The planned status with a refused write as the reason of its main condition.

    A refusal takes precedence over progress: "rolling out" would be misleading while the API server rejects the
    rollout. For work that runs to completion the condition is Unknown, as a refused write does not make it fail.
    """
    if getattr(status, "ended", ""):
        # The result of finished work is stored in this very condition and must not be lost.
        return status
    goal = getattr(owner, "GOAL", READY)
    condition_status = "Unknown" if goal == SUCCEEDED else "False"
    before = find_condition(owner.status.conditions, goal)
    conditions = [
        msgspec.structs.replace(
            condition,
            status=condition_status,
            reason=problem.reason.code,
            message=problem.message(),
            # Compared with the stored condition, not with the planned one: otherwise every pass would write a new time.
            last_transition_time=before.last_transition_time
            if before and before.status == condition_status
            else condition.last_transition_time,
        )
        if condition.type == goal
        else condition
        for condition in status.conditions
    ]
    return msgspec.structs.replace(status, next=problem.next, conditions=conditions)

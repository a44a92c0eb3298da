"""Writes the status of an owner at the end of a pass, and composes the statuses that no planner can."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from pincompute.api.kinds import KINDS
from pincompute.api.names import OPERATOR
from pincompute.api.status import READY, SUCCEEDED, ResourceStatus, find_condition
from pincompute.api.structs import Metadata
from pincompute.base.problem import Problem
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.objects.content import Object
from pincompute.objects.times import format_time

MAX_MESSAGE_CHARS = 4096


async def write_status(client: Client, kind: str, metadata: Metadata, status: ResourceStatus | Object) -> Object | None:
    """Replaces a status; returns the owner as written, or None if it no longer exists.

    The resourceVersion of the snapshot is the precondition: a status planned from an older owner never overwrites
    that of a newer one. A replacement costs the API server less than an apply, and no one else writes the status.
    """
    body: Object = {
        "metadata": {
            "name": metadata.name,
            "namespace": metadata.namespace,
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version,
        },
        "status": msgspec.to_builtins(status),
    }
    try:
        return await client.replace(body, CUSTOM_RESOURCES[kind], manager=OPERATOR, subresource="status")
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

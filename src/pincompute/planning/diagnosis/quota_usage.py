"""Pods that use up a quota, by workload. Read only when a user asks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction

from pincompute.api.names import TIER_LABEL, WORKLOAD_LABEL
from pincompute.planning.diagnosis.capacity import PodRequirements, format_amount
from pincompute.planning.diagnosis.excerpts import join_first_few
from pincompute.planning.pods.pod import GPU_RESOURCE

_RESOURCE_KEYS = {"cpu": "cpu", "memory": "memory", "gpus": GPU_RESOURCE}


def with_current_usage(note: str, tier: str, pods: Sequence[PodRequirements]) -> str:
    """The note with the usage as it is now, and its largest users, for each resource that the note names.

    The rejection has the usage of that moment, which would contradict the users: some of those pods are gone. Finished
    and deleted pods are not counted.
    """
    of_tier = [
        each
        for each in pods
        if each.is_active and not each.metadata.deletion_timestamp and each.metadata.labels.get(TIER_LABEL) == tier
    ]
    lines: list[str] = []
    for resource in ("cpu", "memory", "gpus", "pods"):
        if not re.search(rf"\b{resource}\b", note) or not (used := _usage_by_workload(resource, of_tier)):
            continue
        total = format_amount(resource, sum(used.values(), Fraction(0)))
        before, after = ("", f" {resource} used") if resource == "pods" else (f" {resource}, ", " used")
        note = re.sub(
            rf"({before})\S+( of \S+{after})", lambda found, total=total: f"{found[1]}{total}{found[2]}", note
        )
        lines.append(_users_line(resource, used))
    return "\n".join(each for each in (note, "; ".join(lines)) if each)


def _usage_by_workload(resource: str, pods: Sequence[PodRequirements]) -> dict[str, Fraction]:
    used: dict[str, Fraction] = {}
    for pod in pods:
        name = pod.metadata.labels.get(WORKLOAD_LABEL, f"pod {pod.metadata.name}")
        amount = pod.requested(_RESOURCE_KEYS[resource]) if resource in _RESOURCE_KEYS else 1
        used[name] = used.get(name, Fraction(0)) + amount
    return {name: amount for name, amount in used.items() if amount}


def _users_line(resource: str, used: Mapping[str, Fraction]) -> str:
    largest = sorted(used, key=lambda name: (-used[name], name))
    users = join_first_few([f"{name} ({format_amount(resource, used[name])})" for name in largest])
    return f"{resource} used by {users}"

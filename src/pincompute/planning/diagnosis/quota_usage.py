"""Pods that use up a quota, by workload. Read only when a user asks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from pincompute.api.names import TIER_LABEL, WORKLOAD_LABEL
from pincompute.planning.diagnosis.capacity import PodRequirements, format_amount
from pincompute.planning.diagnosis.excerpts import join_first_few
from pincompute.planning.pods.pod import GPU_RESOURCE

_RESOURCE_KEYS = {"cpu": "cpu", "memory": "memory", "gpus": GPU_RESOURCE}


def explain_quota_usage(note: str, tier: str, pods: Sequence[PodRequirements]) -> str:
    """The largest users of each resource that the note names; empty if no pod of the tier uses any."""
    of_tier = [each for each in pods if each.is_active and each.metadata.labels.get(TIER_LABEL) == tier]
    resources = [each for each in ("cpu", "memory", "gpus", "pods") if re.search(rf"\b{each}\b", note)]
    lines = [line for each in resources if (line := _users_line(each, of_tier))]
    return "; ".join(lines)


def _users_line(resource: str, pods: Sequence[PodRequirements]) -> str:
    used: dict[str, Fraction] = {}
    for pod in pods:
        name = pod.metadata.labels.get(WORKLOAD_LABEL, f"pod {pod.metadata.name}")
        amount = pod.requested(_RESOURCE_KEYS[resource]) if resource in _RESOURCE_KEYS else 1
        used[name] = used.get(name, Fraction(0)) + amount
    largest = sorted((name for name in used if used[name]), key=lambda name: (-used[name], name))
    if not largest:
        return ""
    users = join_first_few([f"{name} ({format_amount(resource, used[name])})" for name in largest])
    return f"{resource} used by {users}"

"""What every container is held to, be it the workload's own or a part's: its rights, and how much it may use."""

from __future__ import annotations

from pincompute.objects.content import Object

SAFE: Object = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
SAFE_CONTAINER: Object = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
"""What a pod, and what a container has, unless its template says otherwise."""


def amounts(given: Object, cpu: int | str, memory: int | str) -> Object:
    """What is kept, and that memory is not exceeded: a copy that outgrows it must not end its neighbours."""
    requests, limits = given.get("requests", {}), given.get("limits", {})
    kept = requests.get("memory", limits.get("memory", memory))
    return {
        **given,
        "requests": {"cpu": limits.get("cpu", cpu), **requests, "memory": kept},
        "limits": {"memory": kept, **limits},
    }

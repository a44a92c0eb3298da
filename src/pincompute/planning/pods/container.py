"""Defaults of all containers, of workloads and of runtime parts: security context and resources."""

from __future__ import annotations

from pincompute.objects.content import Object

EPHEMERAL_STORAGE = "ephemeral-storage"
POD_SECURITY_DEFAULTS: Object = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
CONTAINER_SECURITY_DEFAULTS: Object = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
"""Security contexts of a pod and of a container, unless the template sets other values."""


def with_resource_defaults(given: Object, cpu: int | str, memory: int | str) -> Object:
    """Complete requests, and the limit for memory.

    Without a limit, a container that uses more memory than it requested could cause other pods of the node to be
    killed. Without a limit for a requested size of disk, the default of its project would apply, which may be less.
    """
    requests, limits = given.get("requests", {}), given.get("limits", {})
    requested_memory = requests.get("memory", limits.get("memory", memory))
    disk = {EPHEMERAL_STORAGE: requests[EPHEMERAL_STORAGE]} if EPHEMERAL_STORAGE in requests else {}
    return {
        **given,
        "requests": {"cpu": limits.get("cpu", cpu), **requests, "memory": requested_memory},
        "limits": {"memory": requested_memory, **disk, **limits},
    }

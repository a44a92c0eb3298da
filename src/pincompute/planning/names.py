"""What natives are called: the workload's own name where one will do, and within Kubernetes' limits."""

from __future__ import annotations

from pincompute.api.workload import Workload
from pincompute.objects.content import digest


def configuration(owner: Workload) -> str:
    """By its content: a copy of a former revision goes on with the files that it knew."""
    return f"{owner.metadata.name}-{digest(owner.spec.configuration)}"


def revision(owner: Workload, number: int = 0) -> str:
    return f"{owner.metadata.name}-{number or owner.metadata.generation}"

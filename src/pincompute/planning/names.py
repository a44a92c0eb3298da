"""What natives are called: the workload's own name where one will do, and within Kubernetes' limits."""

from __future__ import annotations

from pincompute.api.workload import Workload
from pincompute.objects.content import digest


def configuration(owner: Workload) -> str:
    """By its content: a copy of a former revision goes on with the files that it knew."""
    return f"{owner.metadata.name}-{digest(owner.spec.configuration)}"


def revision(owner: Workload, number: int = 0) -> str:
    return f"{owner.metadata.name}-{number or owner.metadata.generation}"


NO_TIER = "no-tier"
"""The quota of pods that are of no tier."""
OBJECTS = "objects"
"""The quota of what is kept and not run."""
SUBMITTER = "submitter"
"""Those who bring work in past the desk."""
FROM_PROJECT = "from-project"
FROM_SYSTEM = "from-system"
FROM_INGRESS = "from-ingress"
FROM_CALLERS = "from-callers"


def project_role(role: str) -> str:
    """The ClusterRole that a role in a project is; each adds to those that come after it."""
    return f"pincompute-project-{role}"

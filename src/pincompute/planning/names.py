"""Names of native objects. Most have the name of their workload; all are within Kubernetes' length limits."""

from __future__ import annotations

from pincompute.api.workload import Workload
from pincompute.objects.content import content_hash


def configuration(owner: Workload) -> str:
    """Named by its content, so that replicas of a former revision keep their files."""
    return f"{owner.metadata.name}-{content_hash(owner.spec.configuration)}"


def certificate(owner: Workload) -> str:
    """Secret in which cert-manager stores the certificate of the address."""
    return f"{owner.metadata.name}-certificate"


def script(owner: Workload, content: str) -> str:
    """Named by its content, because replicas may start at different times."""
    return f"{owner.metadata.name}-script-{content_hash(content)}"


def revision(owner: Workload, number: int) -> str:
    return f"{owner.metadata.name}-{number}"


def ordinal(owner: Workload, pod: str) -> int | None:
    """1 of `db-1`; None if the pod is no replica of the stateful set."""
    before, _, number = pod.rpartition("-")
    return int(number) if before == owner.metadata.name and number.isdigit() else None


def claim_of(owner: Workload, name: str) -> str:
    """`data` of `data-db-1`; empty if it is no claim of a replica."""
    rest, _, number = name.rpartition("-")
    suffix = f"-{owner.metadata.name}"
    return rest.removesuffix(suffix) if number.isdigit() and rest.endswith(suffix) else ""


def job(owner: Workload, number: int, attempt: int) -> str:
    """Job of an attempt. It always has both numbers, so that it cannot equal the name of another workload's Job."""
    return f"{owner.metadata.name}-{number}-{attempt}"


def tasks(owner: Workload, number: int, attempt: int) -> str:
    """ConfigMap with the files of an attempt's tasks."""
    return f"{job(owner, number, attempt)}-tasks"


def task_job(owner: Workload, number: int, attempt: int, task: int) -> str:
    return f"{job(owner, number, attempt)}-t{task}"


def run(owner: Workload, number: int) -> str:
    """Job of a manual run of a cron job. Scheduled runs are named by Kubernetes and end in eight digits."""
    return f"{owner.metadata.name}-now-{number}"


def run_number(owner: Workload, job: str) -> int:
    """3 of `nightly-now-3`; 0 if it is no manual run."""
    before, _, number = job.rpartition("-now-")
    return int(number) if before == owner.metadata.name and number.isdigit() else 0


def task_claim(owner: Workload, claim: str, task: int) -> str:
    """Claim of a task, the same in every attempt."""
    return f"{owner.metadata.name}-{claim}-t{task}"


NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"
"""Label that Kubernetes sets on every namespace."""
NO_TIER = "no-tier"
"""Quota of pods without a tier."""
OBJECTS = "objects"
"""Quota of objects that are stored, such as ConfigMaps and claims."""
CONTAINERS = "containers"
"""Limit range with the defaults of containers."""
SUBMITTER = "submitter"
"""Role binding of members who may create workloads without the desk."""
FROM_PROJECT = "from-project"
FROM_SYSTEM = "from-system"
FROM_INGRESS = "from-ingress"
FROM_METRICS = "from-metrics"
FROM_CALLERS = "from-callers"
TO_ALL_BUT_METADATA = "to-all-but-metadata"


def callers_policy(owner: Workload) -> str:
    """NetworkPolicy of a workload that lists its callers. The dot keeps it apart from those of the project."""
    return f"{owner.metadata.name}.callers"


def project_role(role: str) -> str:
    """ClusterRole of a project role. Each role has the permissions of the roles below it, too."""
    return f"pincompute-project-{role}"

"""What natives are called: the workload's own name where one will do, and within Kubernetes' limits."""

from __future__ import annotations

from pincompute.api.workload import Workload
from pincompute.objects.content import digest


def configuration(owner: Workload) -> str:
    """By its content: a copy of a former revision goes on with the files that it knew."""
    return f"{owner.metadata.name}-{digest(owner.spec.configuration)}"


def script(owner: Workload, content: str) -> str:
    """By its content, as its copies may begin at different times."""
    return f"{owner.metadata.name}-script-{digest(content)}"


def revision(owner: Workload, number: int = 0) -> str:
    return f"{owner.metadata.name}-{number or owner.metadata.generation}"


def ordinal(owner: Workload, pod: str) -> int | None:
    """1 of `db-1`; nothing where it is not one of the numbered copies."""
    before, _, number = pod.rpartition("-")
    return int(number) if before == owner.metadata.name and number.isdigit() else None


def claim_of(owner: Workload, name: str) -> str:
    """`data` of `data-db-1`; nothing where it is no claim of its copies."""
    rest, _, number = name.rpartition("-")
    whose = f"-{owner.metadata.name}"
    return rest.removesuffix(whose) if number.isdigit() and rest.endswith(whose) else ""


def job(owner: Workload, number: int, attempt: int) -> str:
    """Always with both numbers, so that no other workload's name can be the beginning of it."""
    return f"{owner.metadata.name}-{number}-{attempt}"


def tasks(owner: Workload, number: int, attempt: int) -> str:
    """What the tasks of an attempt are told."""
    return f"{job(owner, number, attempt)}-tasks"


def task_job(owner: Workload, number: int, attempt: int, task: int) -> str:
    return f"{job(owner, number, attempt)}-t{task}"


def run(owner: Workload, number: int) -> str:
    """Of a periodic job, by hand; those that come due by themselves end in a number of eight digits."""
    return f"{owner.metadata.name}-now-{number}"


def run_number(owner: Workload, job: str) -> int:
    """3 of `nightly-now-3`; 0 where it is no run by hand."""
    before, _, number = job.rpartition("-now-")
    return int(number) if before == owner.metadata.name and number.isdigit() else 0


def task_claim(owner: Workload, claim: str, task: int) -> str:
    """The same from attempt to attempt."""
    return f"{owner.metadata.name}-{claim}-t{task}"


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

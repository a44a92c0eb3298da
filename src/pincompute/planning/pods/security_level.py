"""Whether a project's level of Pod Security allows a workload, so that it is refused before pods are rejected."""

from __future__ import annotations

from pincompute.api.project import Project
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import POD_SECURITY
from pincompute.objects.content import Object
from pincompute.planning.edit_commands import edit_command, pod_removals, pod_spec
from pincompute.planning.pods.pod_security import violations

RESTRICTED, PRIVILEGED = "restricted", "privileged"


def security_level(project: Project) -> str:
    """The level that the project's namespace enforces: `restricted`, unless it may run infrastructure daemons."""
    return RESTRICTED if project.spec.quota.infrastructure is None else PRIVILEGED


def security_problem(owner: Workload, project: Project | None, spec: Object) -> Problem | None:
    """The problem of a pod with this spec, with the text that the API server would reject it with."""
    if project is None or security_level(project) == PRIVILEGED or not (found := violations(spec)):
        return None
    note = f'violates PodSecurity "{RESTRICTED}:latest": {", ".join(map(str, found))}'
    where = Where(object=owner.metadata.key, field="spec.template")
    return level_problem(owner, RESTRICTED)._replace(where=where, note=note)


def level_problem(owner: Workload, level: str) -> Problem:
    """The problem of pods that this level forbids. The platform's own settings are allowed: only the file's are not."""
    what = f"project {owner.metadata.namespace} allows only pod security level {level}, and the pod needs more"
    forbidden = (path for violation in violations(pod_spec(owner)) for path in violation.paths)
    remedy = edit_command(owner, removals=pod_removals(owner, forbidden))
    return Problem(POD_SECURITY, what, next=remedy or "change what the note names in spec.template")

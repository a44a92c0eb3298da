"""Refuses a workload whose pods the project's level of Pod Security forbids, before anything is written."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from pincompute.api.project import Project
from pincompute.api.training_job import PinterestTrainingJob
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem
from pincompute.planning.pods.pod import secured_pod
from pincompute.planning.pods.security_level import security_problem


def check_pod_security(workload: Workload, project: Project | None) -> Problem | None:
    """The problem of the first pod of the workload that is forbidden: a training job has one for each role."""
    problems = (security_problem(each, project, secured_pod(each)) for each in _by_role(workload))
    return next(filter(None, problems), None)


def _by_role(workload: Workload) -> Iterator[Workload]:
    if not isinstance(workload, PinterestTrainingJob):
        yield workload
        return
    for role in workload.spec.active_roles.values():
        yield msgspec.structs.replace(workload, spec=workload.spec.for_role(role))

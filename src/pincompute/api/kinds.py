"""Registry of all kinds. A new kind is added here."""

from __future__ import annotations

from pincompute.api.cron_job import PinterestCronJob
from pincompute.api.custom_resource import CustomResource
from pincompute.api.daemon import PinterestDaemon
from pincompute.api.job_set import PinterestJobSet
from pincompute.api.project import Project
from pincompute.api.runtime import Runtime
from pincompute.api.service import PinterestService
from pincompute.api.sidecar import PinterestSidecar
from pincompute.api.stateful_set import PinterestStatefulSet
from pincompute.api.training_job import PinterestTrainingJob
from pincompute.api.workload import Workload

KINDS: dict[str, type[CustomResource]] = {
    each.__name__: each
    for each in (
        PinterestService,
        PinterestJobSet,
        PinterestCronJob,
        Project,
        PinterestSidecar,
        Runtime,
        PinterestStatefulSet,
        PinterestTrainingJob,
        PinterestDaemon,
    )
}

WORKLOADS: dict[str, type[Workload]] = {name: kind for name, kind in KINDS.items() if issubclass(kind, Workload)}
"""Kinds that run pods."""

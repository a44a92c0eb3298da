"""One planner a kind: a new one joins here."""

from __future__ import annotations

from collections.abc import Callable

from pincompute.api.cron_job import PinterestCronJob
from pincompute.api.daemon import PinterestDaemon
from pincompute.api.job_set import PinterestJobSet
from pincompute.api.project import Project
from pincompute.api.runtime import Runtime
from pincompute.api.service import PinterestService
from pincompute.api.sidecar import PinterestSidecar
from pincompute.api.stateful_set import PinterestStatefulSet
from pincompute.api.training_job import PinterestTrainingJob
from pincompute.planning import (
    cron_job,
    daemon,
    job_set,
    project,
    runtime_roll,
    service,
    sidecar,
    stateful_set,
    training_job,
)
from pincompute.planning.plan import Plan
from pincompute.planning.snapshot import Snapshot

PLANNERS: dict[str, Callable[[Snapshot], Plan]] = {
    PinterestService.__name__: service.plan,
    PinterestJobSet.__name__: job_set.plan,
    PinterestCronJob.__name__: cron_job.plan,
    PinterestStatefulSet.__name__: stateful_set.plan,
    PinterestTrainingJob.__name__: training_job.plan,
    PinterestDaemon.__name__: daemon.plan,
    Project.__name__: project.plan,
    PinterestSidecar.__name__: sidecar.plan,
    Runtime.__name__: runtime_roll.plan,
}

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
from pincompute.planning import cron_job, daemon, job_set, project, service, sidecar, stateful_set, training_job
from pincompute.planning.glass import with_glass
from pincompute.planning.plan import Plan, soonest
from pincompute.planning.runtimes import runtime_roll
from pincompute.planning.runtimes.age import with_age
from pincompute.planning.runtimes.runtime import hold_left
from pincompute.planning.snapshot import Snapshot

Planner = Callable[[Snapshot], Plan]


def _as_time_goes_by(planner: Planner) -> Planner:
    """A hold and a broken glass end by themselves, and a runtime becomes old: whatever else a kind waits for, it looks
    again then."""

    def plan(snapshot: Snapshot) -> Plan:
        planned = with_glass(with_age(planner(snapshot), snapshot), snapshot)
        return planned._replace(wake_after=soonest(planned.wake_after, hold_left(snapshot.owner, snapshot.now)))

    return plan


PLANNERS: dict[str, Planner] = {
    PinterestService.__name__: _as_time_goes_by(service.plan),
    PinterestJobSet.__name__: _as_time_goes_by(job_set.plan),
    PinterestCronJob.__name__: _as_time_goes_by(cron_job.plan),
    PinterestStatefulSet.__name__: _as_time_goes_by(stateful_set.plan),
    PinterestTrainingJob.__name__: _as_time_goes_by(training_job.plan),
    PinterestDaemon.__name__: _as_time_goes_by(daemon.plan),
    Project.__name__: project.plan,
    PinterestSidecar.__name__: sidecar.plan,
    Runtime.__name__: runtime_roll.plan,
}

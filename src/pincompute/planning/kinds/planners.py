"""Planners by kind. A new kind is registered here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pincompute.api.cron_job import PinterestCronJob
from pincompute.api.daemon import PinterestDaemon
from pincompute.api.job_set import PinterestJobSet
from pincompute.api.project import Project
from pincompute.api.runtime import Runtime
from pincompute.api.service import PinterestService
from pincompute.api.sidecar import PinterestSidecar
from pincompute.api.stateful_set import PinterestStatefulSet
from pincompute.api.training_job import PinterestTrainingJob
from pincompute.planning.break_glass import add_unreviewed_condition
from pincompute.planning.expiry import plan_with_expiry
from pincompute.planning.kinds import cron_job, daemon, job_set, project, service, sidecar, stateful_set, training_job
from pincompute.planning.plan import Plan, soonest
from pincompute.planning.runtimes import roll
from pincompute.planning.runtimes.outdated import add_outdated_condition
from pincompute.planning.runtimes.selection import hold_left_s
from pincompute.planning.snapshot import Snapshot

Planner = Callable[[Snapshot], Plan]


def _with_expiries(planner: Planner) -> Planner:
    """Add what all workloads share: they, holds and emergency overrides expire, and runtimes become outdated.

    The wake-up time covers these, so that the plan changes in time even if no event arrives.
    """

    def plan_unexpired(snapshot: Snapshot) -> Plan:
        planned = add_unreviewed_condition(add_outdated_condition(planner(snapshot), snapshot), snapshot)
        return planned._replace(wake_after_s=soonest(planned.wake_after_s, hold_left_s(snapshot.owner, snapshot.now)))

    return partial(plan_with_expiry, plan_unexpired)


PLANNERS: dict[str, Planner] = {
    PinterestService.__name__: _with_expiries(service.plan),
    PinterestJobSet.__name__: _with_expiries(job_set.plan),
    PinterestCronJob.__name__: _with_expiries(cron_job.plan),
    PinterestStatefulSet.__name__: _with_expiries(stateful_set.plan),
    PinterestTrainingJob.__name__: _with_expiries(training_job.plan),
    PinterestDaemon.__name__: _with_expiries(daemon.plan),
    Project.__name__: project.plan,
    PinterestSidecar.__name__: sidecar.plan,
    Runtime.__name__: roll.plan,
}

"""The result of a planner: all objects wanted, the new status, and the reason for anything that is not as wanted.

A `Plan` is complete. It lists every native object that should exist, so that an object missing from it is deleted;
objects that should stay as they are, without being described again, are listed in `retained`. Actions that follow
from no object, such as the eviction of one pod, are explicit `steps`. Applying a plan therefore requires no decision,
and a plan can be printed, compared and tested without a cluster.

Two fields say when to act again. `wake_after_s` is the time after which the same snapshot would give another plan,
such as a deadline. `has_next_stage` says that further objects follow once these exist: a project's quotas, for
instance, are wanted only after its namespace. Every other change arrives as a watch event.
"""

from __future__ import annotations

from typing import NamedTuple

from pincompute.api.status import ResourceStatus
from pincompute.base.problem import Problem
from pincompute.objects.content import Object
from pincompute.planning.steps import Step


def soonest(*delays_s: float | None) -> float | None:
    """Smallest delay in seconds; None if no delay is given."""
    return min((each for each in delays_s if each is not None), default=None)


class Adoption(NamedTuple):
    """Progress of a workload that adopts objects which existed before it."""

    adopt_now: tuple[str, ...] = ()
    """Uids of the objects adopted in this pass: owner and wanted content are written in one request."""
    adopt_later: tuple[str, ...] = ()
    """Uids of objects that are adopted in a later pass. Until then they belong to another owner, which is no problem.
    """
    steps: tuple[Step, ...] = ()
    problems: tuple[Problem, ...] = ()


class Plan(NamedTuple):
    """Wanted state of one workload. Complete, so that applying it requires no decision."""

    wanted: tuple[Object, ...]
    status: ResourceStatus
    wake_after_s: float | None = None
    """Seconds after which the passage of time alone could change the plan."""
    why: Problem | None = None
    """First cause of a difference between wanted and actual state; None if there is none."""
    retained: tuple[tuple[str, str], ...] = ()
    """Kind and name of native objects that stay as they are, such as records of former revisions."""
    steps: tuple[Step, ...] = ()
    """Steps that follow from no wanted object, such as evictions of pods that are to be replaced."""
    adoption: Adoption = Adoption()
    """Adoption of existing objects. Its steps are skipped while the plan or the adoption has a problem."""
    problems: tuple[Problem, ...] = ()
    """Problems that forbid any change: if there is one, no step is taken."""
    delete_owner: bool = False
    """True if the life of the workload and its grace period are over, so that it is deleted itself."""
    has_next_stage: bool = False
    """True if further objects are wanted once these exist."""

"""Detects pods that cannot become ready without a change, so that a rollout must not wait for them."""

from __future__ import annotations

from pincompute.base.problem import Problem
from pincompute.planning.diagnosis import POD_CHECKS
from pincompute.planning.diagnosis.cause import Cause, PodContext, Rank
from pincompute.planning.observed_pods import Pod
from pincompute.planning.snapshot import Snapshot


def unrecoverable_problem(snapshot: Snapshot, pod: Pod) -> Problem | None:
    """First permanent problem of a pod; None if it is ready or may still become so."""
    if pod.ready:
        return None
    context = PodContext(snapshot.owner, pod, snapshot.now, snapshot.runtimes)
    causes = (each for check in POD_CHECKS for each in check(context))
    return next((each.problem for each in causes if isinstance(each, Cause) and each.rank is Rank.PERMANENT), None)

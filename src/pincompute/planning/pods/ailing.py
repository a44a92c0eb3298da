"""Pods that can never be well by themselves: waiting for them would be waiting for ever."""

from __future__ import annotations

from pincompute.base.problem import Problem
from pincompute.planning.snapshot import Pod, Snapshot
from pincompute.planning.why import LOOKS
from pincompute.planning.why.cause import Cause, Copy, Rank


def ails(snapshot: Snapshot, pod: Pod) -> Problem | None:
    """What ails it; nothing where it is well, or may yet be."""
    if pod.ready:
        return None
    found = (each for look in LOOKS for each in look(Copy(snapshot.owner, pod, snapshot.now, snapshot.runtimes)))
    return next((each.problem for each in found if isinstance(each, Cause) and each.rank is Rank.FINAL), None)

"""One thing that can go wrong with a workload: an ordinary change, and what `why` has to name first of all."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pincompute.api.workload import Workload
from pincompute.base import reasons
from pincompute.base.reasons import Reason
from pincompute.planning.faults.harm import Put

SERVES = ("PinterestService", "PinterestStatefulSet")
RUNS_ON = (*SERVES, "PinterestDaemon")
ONE_PROGRAM = (*RUNS_ON, "PinterestJobSet")
"""Kinds whose pods are made at once, and all of one template."""
ENDED = (reasons.PROGRAM_FAILED, reasons.CRASH_LOOP)
"""How it is told depends on how often it has ended by then."""
NO_ROOM = (reasons.UNSCHEDULABLE, reasons.QUOTA_USED_UP)
"""A project's quota may stand against it before the nodes do."""


def _any(_: Workload) -> bool:
    return True


class Fault(NamedTuple):
    name: str
    about: str
    reasons: tuple[Reason, ...]
    """Any of which names it."""
    put: Put
    kinds: tuple[str, ...] = RUNS_ON
    runs: bool = False
    """Only a node that runs programs shows it."""
    of: Callable[[Workload], bool] = _any
    otherwise: str = ""
    """What is said of all others."""

    def fits(self, workload: Workload) -> bool:
        return not self.hindrance(workload)

    def hindrance(self, workload: Workload) -> str:
        """Why it would not be seen."""
        if workload.kind not in self.kinds:
            return f"it is a {workload.kind}"
        if self.runs and pretended(workload):
            return "no program of it runs, as it is simulated"
        return "" if self.of(workload) else self.otherwise


def pretended(workload: Workload) -> bool:
    return workload.spec.simulated or workload.status.simulated


def stores(workload: Workload) -> bool:
    return bool(getattr(workload.spec, "all_claims", {}))


def has_a_runtime(workload: Workload) -> bool:
    return workload.status.runtime > 0

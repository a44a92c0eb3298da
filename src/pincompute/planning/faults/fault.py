"""A fault of the catalogue."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pincompute.api.workload import Workload
from pincompute.base import reasons
from pincompute.base.reasons import Reason
from pincompute.planning.faults.changes import Mutation

SERVING_KINDS = ("PinterestService", "PinterestStatefulSet")
LONG_RUNNING_KINDS = (*SERVING_KINDS, "PinterestDaemon")
SINGLE_TEMPLATE_KINDS = (*LONG_RUNNING_KINDS, "PinterestJobSet")
"""Kinds that create their pods immediately, all of them from one template."""
EXIT_REASONS = (reasons.PROGRAM_FAILED, reasons.CRASH_LOOP)
"""Which one is reported depends on how often the program has exited by then."""
NO_CAPACITY_REASONS = (reasons.UNSCHEDULABLE, reasons.QUOTA_USED_UP)
"""The quota of the project may reject a pod before the scheduler sees it."""


def _applies_to_all(_: Workload) -> bool:
    return True


class Fault(NamedTuple):
    """A change that breaks a workload, and the reasons by which it must be diagnosed."""

    name: str
    description: str
    expected_reasons: tuple[Reason, ...]
    """The diagnosis is correct if it is any of these."""
    apply: Mutation
    kinds: tuple[str, ...] = LONG_RUNNING_KINDS
    needs_containers: bool = False
    """True if the fault has no effect on simulated nodes, which run no containers."""
    applies_to: Callable[[Workload], bool] = _applies_to_all
    inapplicable_reason: str = ""
    """Reason for which the fault has no effect where `applies_to` is False."""

    def is_applicable(self, workload: Workload) -> bool:
        return not self.why_inapplicable(workload)

    def why_inapplicable(self, workload: Workload) -> str:
        """The reason for which the fault would have no effect; empty if it has one."""
        if workload.kind not in self.kinds:
            return f"it is a {workload.kind}"
        if self.needs_containers and is_simulated(workload):
            return "simulated workloads run no containers"
        return "" if self.applies_to(workload) else self.inapplicable_reason


def is_simulated(workload: Workload) -> bool:
    return workload.spec.simulated or workload.status.simulated


def has_claims(workload: Workload) -> bool:
    return bool(getattr(workload.spec, "all_claims", {}))


def has_port(workload: Workload) -> bool:
    return bool(getattr(workload.spec, "port", 0))


def has_runtime(workload: Workload) -> bool:
    return workload.status.runtime > 0

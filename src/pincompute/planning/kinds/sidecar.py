"""Plans a PinterestSidecar: it becomes no object of its own, but a part of the pods that it serves."""

from __future__ import annotations

from pincompute.api.sidecar import PinterestSidecar, SidecarStatus
from pincompute.api.status import READY
from pincompute.base import reasons
from pincompute.planning import status
from pincompute.planning.plan import Plan
from pincompute.planning.snapshot import Snapshot


def plan(snapshot: Snapshot) -> Plan:
    """Plan its status, which lists the runtimes that contain it."""
    owner: PinterestSidecar = snapshot.owner
    runtimes = snapshot.runtimes.by_number
    numbers = [number for number in runtimes if owner.metadata.name in runtimes[number].spec.parts]
    message = f"part of runtime {' and '.join(map(str, numbers))}" if numbers else "not part of any runtime yet"
    status_ = SidecarStatus(
        observed_generation=owner.metadata.generation,
        conditions=[status.build_condition(snapshot, READY, reasons.AVAILABLE, message, status=True)],
        runtimes=numbers,
    )
    return Plan((), status_)

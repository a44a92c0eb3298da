"""What a PinterestSidecar becomes: nothing of its own; it stands in the pods of those that it serves."""

from __future__ import annotations

from pincompute.api.sidecar import PinterestSidecar, SidecarStatus
from pincompute.api.status import READY
from pincompute.base import reasons
from pincompute.planning import status
from pincompute.planning.plan import Plan
from pincompute.planning.snapshot import Snapshot


def plan(snapshot: Snapshot) -> Plan:
    """Its status says which runtimes would miss it."""
    owner: PinterestSidecar = snapshot.owner
    known = snapshot.runtimes.known
    numbers = [number for number in known if owner.metadata.name in known[number].spec.parts]
    words = f"it is a part of runtime {' and '.join(map(str, numbers))}" if numbers else "no runtime has it yet"
    said = SidecarStatus(
        observed_generation=owner.metadata.generation,
        conditions=[status.said(snapshot, READY, reasons.AVAILABLE, words, status=True)],
        runtimes=numbers,
    )
    return Plan((), said)

"""A workload in the few words that a person needs: what the desk tells and the hand shows."""

from __future__ import annotations

import msgspec

from pincompute.api.service import PinterestService
from pincompute.api.workload import Progress, Wire
from pincompute.base.reasons import PROGRESSING


class Summary(Wire, frozen=True, omit_defaults=False):
    kind: str
    project: str
    name: str
    revision: int
    wanted: int
    image: str
    available: bool = False
    reason: str = PROGRESSING.code
    message: str = ""
    next: str = ""
    address: str = ""
    progress: Progress = Progress()
    simulated: bool = False
    """No program runs: it is only pretended."""

    @property
    def label(self) -> str:
        """`hello@7`."""
        return f"{self.name}@{self.revision}"


def summarize(workload: PinterestService) -> Summary:
    """What is known; while the operator has not yet looked at the newest revision, that is only that it exists."""
    metadata, status = workload.metadata, workload.status
    summary = Summary(
        kind=workload.kind,
        project=metadata.namespace,
        name=metadata.name,
        revision=metadata.generation,
        wanted=workload.spec.replicas,
        image=workload.spec.image,
        address=status.address,
    )
    if status.observed_generation < metadata.generation or not status.conditions:
        return summary
    available = next(each for each in status.conditions if each.type == "Available")
    return msgspec.structs.replace(
        summary,
        available=available.status == "True",
        reason=available.reason,
        message=available.message,
        next=status.next,
        progress=status.progress or Progress(),
        simulated=status.simulated,
    )

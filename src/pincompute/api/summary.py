"""A workload in the few words that a person needs: what the desk tells and the hand shows."""

from __future__ import annotations

import msgspec

from pincompute.api.status import Progress, condition
from pincompute.api.wire import Wire
from pincompute.api.workload import Workload
from pincompute.base.reasons import PROGRESSING


class Summary(Wire, frozen=True, omit_defaults=False):
    kind: str
    project: str
    name: str
    revision: int
    wanted: int
    image: str
    done: bool = False
    """Its goal is reached: it is ready, or has succeeded."""
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


def summarize(workload: Workload) -> Summary:
    """What is known; while the operator has not yet looked at the newest revision, that is only that it exists."""
    metadata, status = workload.metadata, workload.status
    summary = Summary(
        kind=workload.kind,
        project=metadata.namespace,
        name=metadata.name,
        revision=metadata.generation,
        wanted=getattr(workload.spec, "replicas", 0),
        image=workload.spec.image,
        address=status.address,
    )
    if status.observed_generation < metadata.generation:
        return summary
    goal = condition(status.conditions, workload.GOAL)
    if goal is None:
        return summary
    return msgspec.structs.replace(
        summary,
        done=goal.status == "True",
        reason=goal.reason,
        message=goal.message,
        wanted=status.progress.wanted if status.progress else summary.wanted,
        next=status.next,
        progress=status.progress or Progress(),
        simulated=status.simulated,
    )

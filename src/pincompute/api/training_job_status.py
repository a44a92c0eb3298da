"""Status of a PinterestTrainingJob."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from pincompute.api.status import WorkloadStatus
from pincompute.api.structs import StrictStruct


class RoleStatus(StrictStruct, frozen=True):
    """Replicas of one role, by state."""

    name: Annotated[str, Meta(description="Role, such as worker.", max_length=16)]
    wanted: Annotated[int, Meta(description="Replicas wanted, such as 4.")] = 0
    running: Annotated[int, Meta(description="Replicas running, such as 3.")] = 0
    done: Annotated[int, Meta(description="Replicas succeeded, such as 1.")] = 0
    failed: Annotated[int, Meta(description="Replicas failed, such as 1.")] = 0


class TrainingJobStatus(WorkloadStatus, frozen=True):
    """Progress of a training job. The result is kept after its pods are deleted."""

    work: Annotated[
        str, Meta(description="Hash of the work; a different hash starts the training again.", max_length=64)
    ] = ""
    ended: Annotated[str, Meta(description="End time; empty while the training runs.", max_length=32)] = ""
    done: Annotated[int, Meta(description="Replicas succeeded, such as 5.")] = 0
    failures: Annotated[
        dict[str, int],
        Meta(
            description="Failed runs by uid of the pod, such as 3; the job fails if they exceed retries.",
            max_length=1024,
        ),
    ] = {}
    roles: Annotated[list[RoleStatus], Meta(description="Roles, the leader first.", max_length=8)] = []

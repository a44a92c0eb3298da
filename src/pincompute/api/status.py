"""Status of a workload: conditions that follow the Kubernetes conventions, and progress."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from pincompute.api.structs import StrictStruct

# Condition types.
READY = "Ready"
"""Goal of long-running kinds: every replica has the newest revision and is ready."""
SUCCEEDED = "Succeeded"
"""Goal of batch kinds: all work is done."""
AVAILABLE = "Available"
"""At least one replica is ready, of any revision."""
OUTDATED = "Outdated"
"""Replicas run a runtime that was replaced long ago. Set only if true."""
UNREVIEWED = "Unreviewed"
"""Runs under an emergency override. Set only if true."""
EXPIRES_SOON = "ExpiresSoon"
"""Reaches the end of its life soon. Set only if true."""
EXPIRED = "Expired"
"""Is stopped because its life has ended. Set only if true, and its transition is the time of the stop."""
HOST_UNLISTED = "HostUnlisted"
"""Is served at a host that its project was not given. Set only if true."""


class Progress(StrictStruct, frozen=True):
    """Progress of the newest revision's pods."""

    wanted: Annotated[int, Meta(description="Pods wanted, such as 3.")] = 0
    scheduled: Annotated[int, Meta(description="Pods assigned to a node, such as 3.")] = 0
    started: Annotated[int, Meta(description="Pods with a running program, such as 2.")] = 0
    ready: Annotated[int, Meta(description="Pods of the newest revision that are ready, such as 1.")] = 0


class Condition(StrictStruct, frozen=True):
    """A condition that follows the Kubernetes conventions."""

    type: Annotated[str, Meta(description="Condition type, such as Ready.", max_length=64)]
    status: Annotated[str, Meta(description="True, False or Unknown.", max_length=8)]
    reason: Annotated[
        str,
        Meta(description="CamelCase reason code, documented on a page of its own, such as CrashLoop.", max_length=64),
    ]
    message: Annotated[str, Meta(description="Explanation with numbers and names.", max_length=4096)]
    last_transition_time: Annotated[
        str, Meta(description="Time of the last change of the status, such as 2026-01-31T12:00:00Z.")
    ]
    observed_generation: Annotated[int, Meta(description="Generation that the condition describes, such as 7.")] = 0


class ResourceStatus(StrictStruct, frozen=True):
    """Status fields of all planned kinds."""

    observed_generation: Annotated[int, Meta(description="Generation that the status describes, such as 7.")] = 0
    next: Annotated[str, Meta(description="Command to run next if there is a problem, such as pin logs hello.")] = ""
    conditions: Annotated[list[Condition], Meta(description="Conditions.", max_length=16)] = []


class WorkloadStatus(ResourceStatus, frozen=True):
    """Status fields of all workloads. Each kind adds its own."""

    revision: Annotated[int, Meta(description="Number of the newest revision: 7 in hello@7.")] = 0
    content: Annotated[
        str, Meta(description="Hash of the content of that revision, such as 3f9a1c27b0de.", max_length=64)
    ] = ""
    runtime: Annotated[int, Meta(description="Runtime of its pods, such as 42; 0 for none.")] = 0
    parts: Annotated[
        list[Annotated[str, Meta(max_length=64)]],
        Meta(description="Injected runtime parts, such as logs-2.", max_length=32),
    ] = []
    address: Annotated[str, Meta(description="URL of the workload, such as http://hello.me.localhost:8080.")] = ""
    replicas: Annotated[int, Meta(description="Pods that exist, such as 3.")] = 0
    ready_replicas: Annotated[int, Meta(description="Pods that are ready, of any revision, such as 3.")] = 0
    updated_in_place: Annotated[int, Meta(description="Pods whose runtime was updated in place, such as 3.")] = (
        msgspec.field(name="renewed", default=0)
    )
    selector: Annotated[str, Meta(description="Label selector of the pods.")] = ""
    simulated: Annotated[bool, Meta(description="True if the workload is simulated and no program runs.")] = False
    progress: Annotated[Progress | None, Meta(description="Progress of the newest revision.")] = None
    expires: Annotated[
        str, Meta(description="End of its life, by its file or its project, such as 2026-12-31T18:00:00Z.")
    ] = ""


def find_condition(conditions: list[Condition], type_: str) -> Condition | None:
    return next((each for each in conditions if each.type == type_), None)

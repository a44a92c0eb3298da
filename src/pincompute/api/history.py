"""History of workloads: every change of state and reason with its time, also after a workload is gone."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from pincompute.api.insight import ReplicaItem, WorkloadItem
from pincompute.api.structs import LenientStruct

MAX_HISTORY_ENTRIES = 500
MAX_HISTORY_NUMBER = 2**62
"""Above the number of every entry."""
MAX_TEXT_CHARS = 500
"""Length to which a message is shortened."""
MAX_LAST_REPLICAS = 100
"""Replicas that are kept of a deleted workload."""

HistoryEvent = Literal["created", "changed", "state", "launch", "restart", "failed", "evicted", "node", "deleted"]


class LaunchPhases(LenientStruct, frozen=True, omit_defaults=False):
    """Seconds from the creation of a replica to each phase of its launch; null if unknown."""

    scheduled_s: int | None = None
    sandbox_s: int | None = None
    """Its network and volumes are set up."""
    started_s: int | None = None
    """Its images are pulled, and its containers run."""
    ready_s: int | None = None


class HistoryEntry(LenientStruct, frozen=True, omit_defaults=False):
    number: int
    at: str
    event: HistoryEvent
    project: str
    workload: str
    uid: str
    """Distinguishes workloads that had this name one after the other."""
    kind: str = ""
    cluster: str = ""
    revision: int = 0
    replica: str = ""
    node: str = ""
    reason: str = ""
    message: str = ""
    submission: str = ""
    """Submission that led to it; `caller` sent it."""
    caller: str = ""
    launch: LaunchPhases | None = None


class HistoryQuery(LenientStruct, frozen=True):
    """Query parameters of a history: a page of it, newest entry first."""

    limit: Annotated[int, Meta(ge=1, le=MAX_HISTORY_ENTRIES)] = 100
    """Maximum number of entries; at most 500."""
    before: Annotated[int, Meta(ge=1, le=MAX_HISTORY_NUMBER)] = MAX_HISTORY_NUMBER
    """Only entries with a smaller number: the `next` of the page before. The newest by default."""


class HistoryPage(LenientStruct, frozen=True, omit_defaults=False):
    entries: list[HistoryEntry]
    """Newest first."""
    next: int | None = None
    """`before` of the next page; null on the last one."""


class LastState(LenientStruct, frozen=True, omit_defaults=False):
    """The last known state of a workload, kept after it is gone."""

    workload: WorkloadItem
    seen_at: str
    deleted_at: str = ""
    """Empty while it exists."""
    replicas: list[ReplicaItem] = []
    """The replicas that it had last, at most 100."""
    revision_changes: list[str] = []
    """Changes of its last revision, such as `replicas 1 -> 3`."""


class HistoryRequest(LenientStruct, frozen=True):
    """The request of the desk for a page; without a workload, of the whole project."""

    project: str
    workload: str = ""
    query: HistoryQuery = HistoryQuery()


class LastStateRequest(LenientStruct, frozen=True):
    project: str
    workload: str

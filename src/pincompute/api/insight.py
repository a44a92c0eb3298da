"""The simplified model of insight: workloads, replicas and nodes as lists with filters, and as a stream of changes."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from pincompute.api.structs import LenientStruct
from pincompute.api.workload_summary import WorkloadSummary

MAX_PAGE_ITEMS = 500
MAX_COUNTED_VALUES = 500
MAX_FILTER_CHARS = 253
"""Length of a filter: the longest name of Kubernetes."""
MAX_CURSOR_CHARS = 2_048

# Without the patterns, filters in percent-encoding could exceed the longest request line that servers accept.
_Filter = Annotated[str, Meta(max_length=MAX_FILTER_CHARS, pattern="^[-A-Za-z0-9.:]*$")]

WORKLOADS: Final = "workloads"
REPLICAS: Final = "replicas"
NODES: Final = "nodes"
Collection = Literal["workloads", "replicas", "nodes"]


class WorkloadItem(WorkloadSummary, frozen=True):
    """A workload in a list of insight."""

    cluster: str = ""
    runtime: int = 0
    """Number of the runtime of its pods; 0 for none."""
    tier: str = ""
    owner: str = ""
    created_at: str = ""

    @property
    def state(self) -> str:
        if self.failed:
            return "failed"
        return "done" if self.done else "waiting"


class ReplicaItem(LenientStruct, frozen=True, omit_defaults=False):
    """A replica of a service, or a task of a batch."""

    cluster: str
    project: str
    workload: str
    name: str
    uid: str
    kind: str = ""
    """Kind of the workload."""
    state: str = ""
    """State in one word, such as Ready or CrashLoopBackOff."""
    ready: bool = False
    restarts: int = 0
    node: str = ""
    since: str = ""
    attempt: int = 0
    """Attempt of a batch that it belongs to; 0 if `index` is the number of the task itself."""
    index: int | None = None
    """Position of a task among the tasks of its attempt, from 0; null for what is no task."""


class NodeItem(LenientStruct, frozen=True, omit_defaults=False):
    """A node, for administrators."""

    cluster: str
    name: str
    uid: str
    ready: bool = False
    schedulable: bool = True
    reason: str = ""
    """Why it is not ready; empty if it is."""
    message: str = ""
    project: str = ""
    """Empty: nodes belong to no project."""


InsightItem = WorkloadItem | ReplicaItem | NodeItem


class InsightQuery(LenientStruct, frozen=True):
    """Query parameters of a list. Filters of fields that a list does not have select nothing."""

    project: _Filter = ""
    kind: _Filter = ""
    workload: _Filter = ""
    """Only replicas of this workload."""
    node: _Filter = ""
    reason: _Filter = ""
    state: _Filter = ""
    """Of workloads: done, waiting or failed. Of replicas: their state, such as Ready."""
    search: Annotated[str, Meta(max_length=MAX_FILTER_CHARS)] = ""
    """Text that occurs in a name, project, reason, message, image or node, in upper or lower case."""
    sort: Literal["name", "reason", "state", "created", "restarts", "urgency"] = "name"
    """By `urgency`, failed workloads come first, then those with a problem, those that wait, and those as wanted."""
    descending: bool = False
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE_ITEMS)] = 100
    """Maximum number of items; at most 500."""
    cursor: Annotated[str, Meta(max_length=MAX_CURSOR_CHARS, pattern="^[-_A-Za-z0-9]*$")] = ""
    """The `next` of the page before."""
    fields: Annotated[str, Meta(max_length=1_000, pattern="^[A-Za-z_,]*$")] = ""
    """Names of the fields to return, separated by commas. Default: all."""
    count: Literal["", "reason", "state", "kind", "project"] = ""
    """Field by whose values the items on all pages are counted, in `counts`."""


class _Page(LenientStruct, frozen=True, omit_defaults=False, kw_only=True):
    total: int
    """Number of items on all pages."""
    next: str
    """Cursor of the next page; empty on the last one."""
    position: str
    """Position in the stream of changes: a stream from there has every change after this page."""
    age_s: float
    """Seconds since the cluster was last heard; 0 while it is."""
    counts: dict[str, int] = {}
    """Number of items by the value of the field in `count`, most frequent first; at most 500 values."""


class WorkloadPage(_Page, frozen=True):
    items: list[WorkloadItem]


class ReplicaPage(_Page, frozen=True):
    items: list[ReplicaItem]


class NodePage(_Page, frozen=True):
    items: list[NodeItem]


class ChangesQuery(LenientStruct, frozen=True):
    """Query parameters of the stream of changes."""

    after: Annotated[str, Meta(max_length=64)] = ""
    """Position from which to continue. The header Last-Event-ID, which browsers send, takes precedence."""


RELOAD = "reload"
GONE = "gone"


class ChangeFrame(LenientStruct, frozen=True):
    """One event of the stream, from insight to the desk."""

    id: str = ""
    event: str = ""
    """`workloads`, `replicas`, `gone` or `reload`; empty for a heartbeat."""
    project: str = ""
    data: msgspec.Raw = msgspec.Raw(b"{}")


class GoneItem(LenientStruct, frozen=True, omit_defaults=False):
    """An item that was deleted."""

    collection: Collection
    project: str
    name: str
    uid: str


class EventData(LenientStruct, frozen=True):
    """The data of an event of the stream, by the name of the event: one of these."""

    workloads: WorkloadItem | None = None
    replicas: ReplicaItem | None = None
    nodes: NodeItem | None = None
    """For administrators only."""
    gone: GoneItem | None = None
    reload: dict[str, str] | None = None
    """Empty: events were lost, or the caller's projects have changed. Read the lists again."""


class WriteMark(LenientStruct, frozen=True):
    """A write that an answer must include, so that a client reads its own writes."""

    kind: str
    name: str
    revision: int = 0
    """Insight must have received this resourceVersion of the kind."""
    deleted_uid: str = ""
    """Insight must not have this object any more, or have it as terminating."""


class ListRequest(LenientStruct, frozen=True):
    """The request of the desk for a list, with what its caller may see."""

    projects: list[str] | None = None
    """The projects that the caller may view; None: all of them."""
    query: InsightQuery = InsightQuery()


class SummariesRequest(LenientStruct, frozen=True):
    project: str
    writes: list[WriteMark] = []


class ChangesRequest(LenientStruct, frozen=True):
    projects: list[str] | None = None
    after: str = ""

"""Everything known about one workload: the response behind `pin show` and `pin why`."""

from __future__ import annotations

from pincompute.api.structs import LenientStruct
from pincompute.api.usage import WorkloadUsage
from pincompute.api.workload_summary import WorkloadSummary
from pincompute.objects.content import Object


class Membership(LenientStruct, frozen=True, omit_defaults=False):
    """Whether a replica is registered in the serverset of its workload, as its registrar reports."""

    registered: bool
    since: str = ""
    session: str = ""
    """Session of the registrar in ZooKeeper, such as 0x100001f44b20000."""
    message: str = ""


class ContainerDetail(LenientStruct, frozen=True, omit_defaults=False):
    """One container of a replica."""

    name: str
    state: str = ""
    """Running, or why it does not run, such as CrashLoopBackOff or Completed."""
    ready: bool = False
    restarts: int = 0
    image: str = ""
    exit_code: int | None = None
    """Exit code of the last run that ended; null if none has."""
    is_init: bool = False
    """Starts before the main containers: to the end, or as a sidecar."""


class ReplicaDetail(LenientStruct, frozen=True, omit_defaults=False):
    """One pod of the workload."""

    name: str
    node: str = ""
    state: str = ""
    ready: bool = False
    restarts: int = 0
    since: str = ""
    cpu_millicores: int | None = None
    """CPU that it uses now; null if unknown."""
    memory_bytes: int | None = None
    """Memory that it uses now; null if unknown."""
    usage: WorkloadUsage | None = None
    """Its use against its request and limit."""
    address: str = ""
    """IP address of the pod; empty without a serverset."""
    membership: Membership | None = None
    """Null without a serverset, and until the registrar reports."""
    containers: list[ContainerDetail] = []
    """In the order of their start."""


class NativeDetail(LenientStruct, frozen=True, omit_defaults=False):
    name: str
    """Kind and name, such as `Deployment/hello`."""
    since: str = ""


class EventDetail(LenientStruct, frozen=True, omit_defaults=False):
    """Kubernetes events with the same reason and note, aggregated over repetitions and objects."""

    involved_object: str
    """`Pod/hello-1`, or `3 Pods` when the same event was recorded for several."""
    warning: bool
    reason: str
    note: str
    count: int
    last_seen: str


class RevisionDetail(LenientStruct, frozen=True, omit_defaults=False):
    number: int
    created_at: str
    changes: list[str] = []
    """Field changes against the previous revision, such as `replicas 1 -> 3`."""
    runtime: int = 0
    images: dict[str, str] = {}
    """Image digest of each container."""


class WorkloadDetail(LenientStruct, frozen=True, omit_defaults=False):
    summary: WorkloadSummary
    resource: Object
    """The workload as stored in the cluster."""
    replicas: list[ReplicaDetail] = []
    natives: list[NativeDetail] = []
    events: list[EventDetail] = []
    """Oldest first."""
    history: list[RevisionDetail] = []
    """Oldest first."""
    usage: WorkloadUsage | None = None
    """CPU and memory that it uses now."""


class PathStep(LenientStruct, frozen=True, omit_defaults=False):
    """One object on the way from a workload to the cause, or that the blocked one needs."""

    vertex: str
    """Its vertex in the causal graph of docs/why.md, such as `image`."""
    object: str
    """Such as `pod hello-1`."""
    blocked: bool
    since: str = ""
    """Time since which it is blocked or well; empty if unknown."""
    evidence: str = ""


class OtherCause(LenientStruct, frozen=True, omit_defaults=False):
    """A cause besides the first one that is independent of it."""

    reason: str
    what: str
    where: str = ""
    note: str = ""
    next: str = ""


class Diagnosis(LenientStruct, frozen=True, omit_defaults=False):
    """Result of `pin why`: the cause of a problem, or the statement that there is none."""

    label: str
    is_problem: bool
    reason: str
    what: str
    where: str = ""
    note: str = ""
    next: str = ""
    waits_for: str = ""
    """The actor that has to act next; empty if there is no problem."""
    also: OtherCause | None = None
    """The next cause to resolve; null if there is only one."""
    path: list[PathStep] = []
    """From the workload down to the cause, all blocked, and then what the cause needs, which is well."""


class ChangeResult(LenientStruct, frozen=True, omit_defaults=False):
    """Result of an edit."""

    summary: WorkloadSummary
    messages: list[str]
    written: bool = True
    """False if the workload already had the wanted values."""

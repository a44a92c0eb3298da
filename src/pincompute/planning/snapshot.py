"""All that a planner may know: frozen, complete, and with the time in it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from pincompute.api.names import OPERATOR, PARTS, RAN, SHAPE, TEMPLATE, WANTED, WORKLOAD
from pincompute.api.project import Project
from pincompute.api.wire import Metadata, Wire
from pincompute.objects.content import digest
from pincompute.objects.managers import KUBERNETES
from pincompute.planning.runtimes.runtime import Runtimes

FRIENDS = KUBERNETES | {"training-operator"}
"""Whose writing into natives is how they work: Kubernetes' own, and Kubeflow's."""


class Terminated(Wire, frozen=True):
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    """The last lines that the container printed, where it ended badly."""
    said_at: str | None = msgspec.field(name="finishedAt", default="")
    """Null where the node was away, and nobody knows."""

    @property
    def finished_at(self) -> str:
        return self.said_at or ""


class Waiting(Wire, frozen=True):
    reason: str = ""
    message: str = ""


class Running(Wire, frozen=True):
    started_at: datetime


class State(Wire, frozen=True):
    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class Container(Wire, frozen=True):
    """How one container is doing."""

    name: str
    image: str = ""
    image_id: str = msgspec.field(name="imageID", default="")
    ready: bool = False
    started: bool | None = None
    """False as long as a startup probe has not succeeded."""
    restart_count: int = 0
    state: State = State()
    last_state: State = State()


class PodCondition(Wire, frozen=True):
    type: str
    status: str
    reason: str = ""
    message: str = ""


class PodStatus(Wire, frozen=True):
    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    start_time: datetime | None = None
    """When a node took it."""
    conditions: list[PodCondition] = []
    container_statuses: list[Container] = []
    init_container_statuses: list[Container] = []
    observed_generation: int = 0
    """What the kubelet has taken up; 0 where it does not say."""


class OwnedMetadata(Metadata, frozen=True):
    """Metadata with the owner, as natives carry it."""

    owner_references: list[dict[str, object]] = []

    @property
    def controller(self) -> str:
        """The uid of the owner that controls this object."""
        return next((str(each["uid"]) for each in self.owner_references if each.get("controller")), "")


class Gate(Wire, frozen=True):
    name: str


class Image(Wire, frozen=True):
    """Which image a container is to have."""

    name: str
    image: str = ""


class Placed(Wire, frozen=True):
    """Where a pod runs, or what keeps it from being given a node; and what it runs beside its program."""

    node_name: str = ""
    scheduling_gates: list[Gate] = []
    init_containers: list[Image] = []


class Ran(NamedTuple):
    """What a sidecar ran when it was given another image."""

    name: str
    restarts: int
    image: str

    @classmethod
    def all(cls, said: str) -> list[Ran]:
        """As the annotation says it."""
        entries = (each.partition("=") for each in said.split())
        parted = ((name, *rest.partition("@")) for name, _, rest in entries)
        return [cls(name, int(restarts), image) for name, restarts, _, image in parted if restarts.isdigit()]

    def __str__(self) -> str:
        return f"{self.name}={self.restarts}@{self.image}"


class Pod(Wire, frozen=True):
    """The few fields of a pod that planning reads; nothing else of it is ever kept."""

    metadata: OwnedMetadata
    spec: Placed = Placed()
    status: PodStatus = PodStatus()

    @property
    def workload(self) -> str:
        return self.metadata.labels.get(WORKLOAD, "")

    @property
    def template(self) -> str:
        return self.metadata.labels.get(TEMPLATE, "")

    @property
    def shape(self) -> str:
        """Pods that share it differ in the images of sidecars alone."""
        return self.metadata.labels.get(SHAPE, "")

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the runtime that were injected, such as `logs-2`."""
        return tuple(self.metadata.annotations.get(PARTS, "").split())

    @property
    def ready(self) -> bool:
        return self.says("Ready") and not self.restarting

    @property
    def renewed(self) -> bool:
        """It got its runtime where it is, and was not made with it."""
        return RAN in self.metadata.annotations

    @property
    def restarted(self) -> datetime | None:
        """When the last of the sidecars began that were given other images; nothing while one does not run."""
        names = {each.name for each in Ran.all(self.metadata.annotations.get(RAN, ""))}
        runs = [each.state.running for each in self.status.init_container_statuses if each.name in names]
        if not runs or self.restarting or not all(runs):
            return None
        return max(each.started_at for each in runs if each)

    @property
    def restarting(self) -> bool:
        """Sidecars were given other images, and the kubelet has not come to it yet: it speaks of what ran before."""
        left = self.metadata.annotations.get(RAN)
        if left is None:
            return False
        if 0 < self.status.observed_generation < self.metadata.generation:
            return True
        images = {each.name: each.image for each in self.spec.init_containers}
        starts = {each.name: each.restart_count for each in self.status.init_container_statuses}
        return any(
            ran.image != images.get(ran.name) and starts.get(ran.name, 0) <= ran.restarts for ran in Ran.all(left)
        )

    @property
    def lives(self) -> bool:
        return not self.metadata.deletion_timestamp and self.status.phase not in {"Failed", "Succeeded"}

    @property
    def has_ended(self) -> bool:
        """Its program; what runs beside it may take a moment longer."""
        states = [each.state for each in self.status.container_statuses]
        return bool(states) and all(each.terminated for each in states)

    def says(self, condition: str) -> bool:
        return any(each.type == condition and each.status == "True" for each in self.status.conditions)


class NativeCondition(PodCondition, frozen=True):
    last_transition_time: datetime | None = None


class NativeStatus(Wire, frozen=True):
    """What natives of every kind may say of themselves; a kind that reads more declares more."""

    phase: str = ""
    conditions: list[NativeCondition] = []
    start_time: datetime | None = None
    """When its work began."""
    hard: dict[str, str] = {}
    """Of a quota: what it counts against."""
    used: dict[str, str] = {}
    completed_indexes: str = ""
    """Of an indexed Job: which are done, such as 0-16,18."""
    failed_indexes: str = ""
    """The same of those that will not be tried again."""
    capacity: dict[str, int | str] = {}
    """Of a claim: what it holds."""
    desired_number_scheduled: int = 0
    """Of what runs once on a node: how many nodes are to have it."""
    completion_time: datetime | None = None
    """Of a Job that did its work."""
    last_schedule_time: datetime | None = None
    """Of a CronJob: the time that the last of its runs was due."""
    observed_generation: int = 0
    """Of what is made again and again: the generation that Kubernetes has taken up."""
    replicas: int = 0
    """Of what makes copies: how many there are."""
    fully_labeled_replicas: int = 0
    """Of a ReplicaSet: those that bear the labels of its template, whatever they were made by."""
    updated_replicas: int = 0
    """Those of them that Kubernetes takes to be of the newest revision."""
    update_revision: str = ""
    """Of a StatefulSet: what Kubernetes calls that revision."""


class Writer(Wire, frozen=True):
    """One entry of the server's record of who wrote what."""

    manager: str = ""
    operation: str = ""
    subresource: str = ""
    time: str = ""
    fields: Any = msgspec.field(name="fieldsV1", default=None)


class NativeMetadata(OwnedMetadata, frozen=True):
    """With who else has written into it: what they wrote is not kept, only that they did.

    Nor is its revision: Kubernetes tells of every copy in what makes copies, and what says nothing else is no news.
    """

    managed_fields: tuple[Writer, ...] = ()
    """Read, and not kept."""
    strangers: tuple[str, ...] = ()
    """Those who are neither we nor Kubernetes, and when each wrote last."""
    record: str = ""
    """A digest of what we are on record for: another one, and somebody has taken something from us."""
    applied: bool = False
    """All that we are on record for was applied: nothing of it is left from when it was made."""

    def __post_init__(self) -> None:
        if self.resource_version:
            msgspec.structs.force_setattr(self, "resource_version", "")
        if not self.managed_fields:
            return
        entries = [each for each in self.managed_fields if each.subresource != "status"]
        strangers = tuple(
            " ".join((each.manager, each.operation, each.subresource, each.time))
            for each in entries
            if each.manager != OPERATOR and each.manager not in FRIENDS
        )
        ours = [each for each in entries if each.manager == OPERATOR]
        kept = {
            "managed_fields": (),
            "strangers": strangers,
            "record": digest([each.fields for each in ours]) if ours else "",
            "applied": [each.operation for each in ours] == ["Apply"],
        }
        for name, value in kept.items():
            msgspec.structs.force_setattr(self, name, value)


class Native(Wire, frozen=True):
    """One object that a workload became, as last seen: whose it is, what was last wanted of it, and what it says."""

    metadata: NativeMetadata
    kind: str = ""
    status: NativeStatus = NativeStatus()

    @property
    def wanted(self) -> str:
        return self.metadata.annotations.get(WANTED, "")

    @property
    def template(self) -> str:
        """Of a ReplicaSet: the digest of the template of its pods; it bears their labels."""
        return self.metadata.labels.get(TEMPLATE, "")

    @property
    def shape(self) -> str:
        return self.metadata.labels.get(SHAPE, "")

    @property
    def taken_up(self) -> bool:
        """Kubernetes works on what was last written, and not on what was before."""
        return 0 < self.metadata.generation <= self.status.observed_generation

    def says(self, condition: str, status: str = "True") -> NativeCondition | None:
        return next((each for each in self.status.conditions if each.type == condition and each.status == status), None)


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """What a cluster says of itself."""

    name: str
    domain: str
    """Under which services are found: `hello.me.<domain>`."""
    port: int
    """On which the ingress listens."""
    simulated: bool = False
    """No node runs containers: programs are only pretended to run."""
    serves: tuple[str, ...] | None = None
    """The kinds of neighbours that it has, such as PyTorchJob; nothing where it does not say."""

    @classmethod
    def of(cls, facts: dict[str, str]) -> Cluster:
        """As the cluster's own ConfigMap tells it."""
        return cls(
            name=facts["name"],
            domain=facts["domain"],
            port=int(facts["port"]),
            simulated=facts["nodes"] == "simulated",
            serves=tuple(facts["serves"].split()) if "serves" in facts else None,
        )


class Snapshot(NamedTuple):
    owner: Any
    """The workload, or another noun that is planned; each planner says which it takes."""
    natives: tuple[Native, ...]
    pods: tuple[Pod, ...]
    cluster: Cluster
    now: datetime
    project: Project | None = None
    runtimes: Runtimes = Runtimes()

    def made(self, pod: Pod) -> bool:
        """Whether its makers lead to the owner: labels can be given to anything, and a uid is given once."""
        makers = {each.metadata.uid: each.metadata.controller for each in self.natives}
        maker = pod.metadata.controller
        while maker in makers:
            maker = makers.pop(maker)
        return bool(maker == self.owner.metadata.uid)

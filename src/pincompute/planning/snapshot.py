"""The input of a planner: a workload, its objects in the cluster, and the time, as one frozen value.

A `Snapshot` is complete. Planners read nothing else, neither a clock nor a client nor state of an earlier pass, so that
the plan is a function of the snapshot alone. It is also small: the controller keeps every pod of a cluster in memory in
this form, so a `Pod` has only the fields that planning reads, and a `Native` has no spec at all. The content of a
native object is represented by the hash that was written with it (see `natives.with_hashes`).

The structs mirror the JSON of Kubernetes and are decoded leniently: unknown fields are ignored. Values that the API
server reports but that must not count as a change are dropped while decoding, such as resourceVersion: the cache
compares the decoded values to decide whether an event requires a pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from pincompute.api.daemon import PinterestDaemon
from pincompute.api.hosts import HostRules
from pincompute.api.names import (
    IN_PLACE_HASH_LABEL,
    KIND_LABEL,
    OPERATOR,
    TEMPLATE_HASH_LABEL,
    WANTED_HASH_ANNOTATION,
)
from pincompute.api.project import Project
from pincompute.api.structs import LenientStruct
from pincompute.objects.content import content_hash
from pincompute.objects.field_managers import KUBERNETES_MANAGERS
from pincompute.planning.hosts import HOST_GRANTED, HostVerdict
from pincompute.planning.observed_pods import OwnedMetadata, Pod, PodCondition
from pincompute.planning.runtimes.selection import Runtimes

PLATFORM_FIELD_MANAGERS = KUBERNETES_MANAGERS | {"training-operator"}
"""Field managers that write into native objects as part of their function: Kubernetes' own, and Kubeflow's."""


class NativeCondition(PodCondition, frozen=True):
    last_transition_time: datetime | None = None


class PointPort(LenientStruct, frozen=True):
    error: str = ""
    """Why the port does not lead to the object, as a qualified CamelCase code."""


class IngressPoint(LenientStruct, frozen=True):
    """An address at which an ingress controller serves an Ingress."""

    ip: str = ""
    hostname: str = ""
    ports: list[PointPort] = []


class LoadBalancerStatus(LenientStruct, frozen=True):
    ingress: list[IngressPoint] = []


class NativeStatus(LenientStruct, frozen=True):
    """Status fields of native objects of all kinds; each kind has only some of them."""

    phase: str = ""
    conditions: list[NativeCondition] = []
    start_time: datetime | None = None
    """Start time of a Job."""
    hard: dict[str, str] = {}
    """Of a quota: its limits."""
    used: dict[str, str] = {}
    completed_indexes: str = ""
    """Of an indexed Job: the indexes that succeeded, such as 0-16,18."""
    failed_indexes: str = ""
    """Of an indexed Job: the indexes that failed for good."""
    capacity: dict[str, int | str] = {}
    """Of a claim: the size of its volume."""
    desired_number_scheduled: int = 0
    """Of a DaemonSet: the number of nodes that should run it."""
    completion_time: datetime | None = None
    """Of a Job that succeeded."""
    last_schedule_time: datetime | None = None
    """Of a CronJob: the scheduled time of its last run."""
    observed_generation: int = 0
    """Generation that the object's controller has observed."""
    replicas: int = 0
    """Number of pods of a Deployment, ReplicaSet or StatefulSet."""
    fully_labeled_replicas: int = 0
    """Of a ReplicaSet: pods that have the labels of its template, including adopted ones."""
    updated_replicas: int = 0
    """Pods that Kubernetes counts as updated to the newest revision."""
    update_revision: str = ""
    """Of a StatefulSet: Kubernetes' name for its newest revision."""
    load_balancer: LoadBalancerStatus = LoadBalancerStatus()
    """Of an Ingress: written by its controller once it serves it."""


class ManagedFieldsEntry(LenientStruct, frozen=True):
    """One entry of `metadata.managedFields`."""

    manager: str = ""
    operation: str = ""
    subresource: str = ""
    time: str = ""
    fields: Any = msgspec.field(name="fieldsV1", default=None)


class NativeMetadata(OwnedMetadata, frozen=True):
    """Metadata of a native object, with a summary of its managed fields.

    The managed fields themselves are dropped, because they are larger than everything else that is cached. So is
    resourceVersion: each status update of a pod changes the resourceVersion of the object that created it, and a change
    of it alone must not trigger a pass.
    """

    managed_fields: tuple[ManagedFieldsEntry, ...] = ()
    """Read and then dropped."""
    foreign_managers: tuple[str, ...] = ()
    """Managers other than us and Kubernetes: name, operation, subresource and time of the last write."""
    own_fields_hash: str = ""
    """Hash of the fields that we manage. If it changes without a write of ours, another manager has taken some."""
    only_applied: bool = False
    """True if all our fields were applied, and none is left from the POST that created the object."""

    def __post_init__(self) -> None:
        if self.resource_version:
            msgspec.structs.force_setattr(self, "resource_version", "")
        if not self.managed_fields:
            return
        entries = [each for each in self.managed_fields if each.subresource != "status"]
        foreign_managers = tuple(
            " ".join((each.manager, each.operation, each.subresource, each.time))
            for each in entries
            if each.manager != OPERATOR and each.manager not in PLATFORM_FIELD_MANAGERS
        )
        ours = [each for each in entries if each.manager == OPERATOR]
        summary = {
            "managed_fields": (),
            "foreign_managers": foreign_managers,
            "own_fields_hash": content_hash([each.fields for each in ours]) if ours else "",
            "only_applied": [each.operation for each in ours] == ["Apply"],
        }
        for name, value in summary.items():
            msgspec.structs.force_setattr(self, name, value)


class Native(LenientStruct, frozen=True):
    """A Kubernetes object that a workload became, as last seen: metadata, hashes and status, but no spec."""

    metadata: NativeMetadata
    kind: str = ""
    status: NativeStatus = NativeStatus()
    data: dict[str, Any] = {}
    """Of a ConfigMap of a daemon, for its pinned revisions. Those of other kinds are too many to cache, and dropped."""

    def __post_init__(self) -> None:
        if self.data and self.metadata.labels.get(KIND_LABEL) != PinterestDaemon.__name__:
            msgspec.structs.force_setattr(self, "data", {})

    @property
    def wanted_hash(self) -> str:
        """Hash of the content that was last written."""
        return self.metadata.annotations.get(WANTED_HASH_ANNOTATION, "")

    @property
    def template_hash(self) -> str:
        """Of a ReplicaSet: hash of its pod template, which is among the labels that it shares with its pods."""
        return self.metadata.labels.get(TEMPLATE_HASH_LABEL, "")

    @property
    def in_place_hash(self) -> str:
        return self.metadata.labels.get(IN_PLACE_HASH_LABEL, "")

    @property
    def generation_observed(self) -> bool:
        """True if the object's controller has observed the last write, so that its status describes that."""
        return 0 < self.metadata.generation <= self.status.observed_generation

    def has_content(self, wanted: Mapping[str, Any]) -> bool:
        """True if this wanted object is what was last written."""
        return self.wanted_hash == str(wanted["metadata"]["annotations"][WANTED_HASH_ANNOTATION])

    def int_annotation(self, name: str) -> int:
        """Value of an annotation as a number; 0 if it is missing or no number."""
        text = self.metadata.annotations.get(name, "")
        return int(text) if text.isdigit() else 0

    def find_condition(self, condition: str, status: str = "True") -> NativeCondition | None:
        return next((each for each in self.status.conditions if each.type == condition and each.status == status), None)


OWN_INGRESS = "nginx"
"""Fact `ingress` of a cluster on which the ingress agent runs."""


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a cluster that planning depends on."""

    name: str
    domain: str
    """Domain of the services' host names: `hello.me.<domain>`."""
    port: int
    """Port of the ingress."""
    https_port: int = 443
    simulated: bool = False
    """True if no node runs containers."""
    reserved_hosts: tuple[str, ...] = ()
    """Hosts of the platform's own services, such as that of the desk."""
    own_ingress: bool = False
    """True if the platform's own ingress serves the Ingresses without a class."""
    served_kinds: tuple[str, ...] | None = None
    """Optional kinds that the API server serves, such as PyTorchJob; None if that is unknown."""

    @classmethod
    def from_facts(cls, facts: dict[str, str]) -> Cluster:
        """Read the data of the ConfigMap in which a cluster describes itself."""
        return cls(
            name=facts["name"],
            domain=facts["domain"],
            port=int(facts["port"]),
            https_port=int(facts.get("httpsPort", 443)),
            simulated=facts["nodes"] == "simulated",
            own_ingress=facts.get("ingress") == OWN_INGRESS,
            reserved_hosts=tuple(facts.get("reservedHosts", "").split()),
            served_kinds=tuple(facts["serves"].split()) if "serves" in facts else None,
        )

    @property
    def host_rules(self) -> HostRules:
        return HostRules(self.domain, self.reserved_hosts)


class ServedCertificate(NamedTuple):
    """The certificate with which an ingress answers for a host: its names and expiry only."""

    names: tuple[str, ...]
    expires: datetime


class Snapshot(NamedTuple):
    """Everything that a plan depends on."""

    owner: Any
    """The workload, project or other custom resource that is planned; each planner narrows the type."""
    natives: tuple[Native, ...]
    pods: tuple[Pod, ...]
    cluster: Cluster
    now: datetime
    project: Project | None = None
    runtimes: Runtimes = Runtimes()
    host: HostVerdict = HOST_GRANTED
    """Of a service: whether it gets its custom host, decided among all services of the cluster."""
    expired: bool = False
    """The life of the workload has ended: it gets no pods, and keeps its claims."""
    ingress_classes: tuple[str, ...] | None = None
    """Names of the cluster's IngressClasses, sorted; None if they are unknown."""
    certificate: ServedCertificate | None = None
    """Of a service with TLS: the certificate with which its address is served; None if it is unknown."""
    natives_known: bool = True
    """False in a preview that reads no natives, so that a missing one says nothing."""

    def owns_pod(self, pod: Pod) -> bool:
        """True if the chain of controllers leads from the pod to the owner.

        Labels prove nothing, because anyone may set them; a uid is unique.
        """
        controllers = {each.metadata.uid: each.metadata.controller_uid for each in self.natives}
        uid = pod.metadata.controller_uid
        while uid in controllers:
            uid = controllers.pop(uid)
        return bool(uid == self.owner.metadata.uid)

    def owned_native(self, kind: str) -> Native | None:
        """First native object of a kind that the owner controls."""
        ours = (each for each in self.natives if each.metadata.controller_uid == self.owner.metadata.uid)
        return next((each for each in ours if each.kind == kind), None)

"""Pods as planners see them: the fields of their JSON that planning reads, and properties that follow from them.

Memory limits the number of pods in a cache. Lists of a pod are tuples: all empty ones are one object, and those of
equal content can be shared.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

import msgspec

from pincompute.api.names import (
    IN_PLACE_HASH_LABEL,
    IN_PLACE_UPDATE_ANNOTATION,
    PARTS_ANNOTATION,
    TEMPLATE_HASH_LABEL,
    WORKLOAD_LABEL,
)
from pincompute.api.structs import LenientStruct, Metadata


class Terminated(LenientStruct, frozen=True):
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    """Last lines of the container's output if it failed."""
    reported_finish: str | None = msgspec.field(name="finishedAt", default="")
    """Null if the node was unreachable, so that the time is unknown."""

    @property
    def finished_at(self) -> str:
        return self.reported_finish or ""


class Waiting(LenientStruct, frozen=True):
    reason: str = ""
    message: str = ""


class Running(LenientStruct, frozen=True):
    started_at: datetime


class ContainerState(LenientStruct, frozen=True):
    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(LenientStruct, frozen=True):
    """Status of one container."""

    name: str
    image: str = ""
    image_id: str = msgspec.field(name="imageID", default="")
    ready: bool = False
    started: bool | None = None
    """False until the startup probe has succeeded."""
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodCondition(LenientStruct, frozen=True):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class PodStatus(LenientStruct, frozen=True):
    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    pod_ip: str = msgspec.field(name="podIP", default="")
    start_time: datetime | None = None
    """Time at which the kubelet accepted the pod."""
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    observed_generation: int = 0
    """Generation that the kubelet has observed; 0 if it does not report one."""


class OwnerReference(LenientStruct, frozen=True):
    """Another object that this one belongs to."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class OwnedMetadata(Metadata, frozen=True):
    """Metadata with owner references."""

    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    @property
    def holding_finalizers(self) -> list[str]:
        """Finalizers of other controllers that hold a deleted object; Kubernetes' own end by themselves."""
        foreign = (each for each in self.finalizers if "/" in each and "kubernetes.io/" not in each)
        return sorted(foreign) if self.deletion_timestamp else []

    @property
    def controller_uid(self) -> str:
        """Uid of the controller among the owners; empty without one."""
        return next((each.uid for each in self.owner_references if each.controller), "")


class SchedulingGate(LenientStruct, frozen=True):
    name: str


class ContainerImage(LenientStruct, frozen=True):
    """Image of a container in the spec."""

    name: str
    image: str = ""


class PodSpec(LenientStruct, frozen=True):
    """Fields of a pod's spec that planning reads."""

    node_name: str = ""
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    init_containers: tuple[ContainerImage, ...] = ()


class PreviousImage(NamedTuple):
    """Image and restart count of a sidecar at the time of its in-place update.

    It is stored in an annotation of the pod. As long as both are unchanged, the old container is still running.
    """

    name: str
    restart_count: int
    image: str

    @classmethod
    def parse_all(cls, annotation: str) -> list[PreviousImage]:
        """Parse entries such as `logs=0@logs:1.0`, separated by spaces; malformed ones are ignored."""
        entries = (each.partition("=") for each in annotation.split())
        fields = ((name, *rest.partition("@")) for name, _, rest in entries)
        return [cls(name, int(restarts), image) for name, restarts, _, image in fields if restarts.isdigit()]

    def __str__(self) -> str:
        return f"{self.name}={self.restart_count}@{self.image}"


class Pod(LenientStruct, frozen=True):
    """The fields of a pod that planning reads. No other field is cached."""

    metadata: OwnedMetadata
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def workload(self) -> str:
        return self.metadata.labels.get(WORKLOAD_LABEL, "")

    @property
    def template_hash(self) -> str:
        return self.metadata.labels.get(TEMPLATE_HASH_LABEL, "")

    @property
    def in_place_hash(self) -> str:
        """Hash of the template without sidecar images: pods with the same value differ in those images only."""
        return self.metadata.labels.get(IN_PLACE_HASH_LABEL, "")

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the injected runtime parts, such as `logs-2`."""
        return tuple(self.metadata.annotations.get(PARTS_ANNOTATION, "").split())

    @property
    def ready(self) -> bool:
        """Condition Ready, unless it may still describe the containers before an in-place update."""
        return self.has_condition("Ready") and not self.sidecar_restart_pending

    @property
    def updated_in_place(self) -> bool:
        """True if its runtime was changed after its creation."""
        return IN_PLACE_UPDATE_ANNOTATION in self.metadata.annotations

    @property
    def sidecars_restarted_at(self) -> datetime | None:
        """Start time of the youngest sidecar that was updated in place; None until all of them run again."""
        names = {
            each.name for each in PreviousImage.parse_all(self.metadata.annotations.get(IN_PLACE_UPDATE_ANNOTATION, ""))
        }
        runs = [each.state.running for each in self.status.init_container_statuses if each.name in names]
        if not runs or self.sidecar_restart_pending or not all(runs):
            return None
        return max(each.started_at for each in runs if each)

    @property
    def sidecar_restart_pending(self) -> bool:
        """True if the kubelet has not yet restarted a sidecar after a change of its image.

        Until then the container statuses, and with them the condition Ready, describe the old containers.
        """
        annotation = self.metadata.annotations.get(IN_PLACE_UPDATE_ANNOTATION)
        if annotation is None:
            return False
        if 0 < self.status.observed_generation < self.metadata.generation:
            return True
        images = {each.name: each.image for each in self.spec.init_containers}
        restarts = {each.name: each.restart_count for each in self.status.init_container_statuses}
        return any(
            previous.image != images.get(previous.name) and restarts.get(previous.name, 0) <= previous.restart_count
            for previous in PreviousImage.parse_all(annotation)
        )

    @property
    def is_active(self) -> bool:
        """True unless the pod has finished or is being deleted, as Kubernetes' own controllers define it."""
        return not self.metadata.deletion_timestamp and self.status.phase not in {"Failed", "Succeeded"}

    @property
    def containers_terminated(self) -> bool:
        """True if all its main containers have terminated; sidecars may still run for a moment."""
        states = [each.state for each in self.status.container_statuses]
        return bool(states) and all(each.terminated for each in states)

    def has_condition(self, condition: str) -> bool:
        return any(each.type == condition and each.status == "True" for each in self.status.conditions)

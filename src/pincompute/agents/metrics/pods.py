"""Pods of workloads as the metrics agent sees them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from pincompute.api.names import (
    IN_PLACE_HASH_LABEL,
    KIND_LABEL,
    SIMULATED_LABEL,
    TEMPLATE_HASH_LABEL,
    WORKLOAD_LABEL,
)
from pincompute.api.structs import LenientStruct
from pincompute.planning.usage import UsageContainer, UsagePod, UsagePodSpec, UsagePodStatus


class _ContainerPort(LenientStruct, frozen=True):
    container_port: int = 0
    name: str = ""
    protocol: str = "TCP"


class _Container(UsageContainer, frozen=True):
    ports: list[_ContainerPort] = msgspec.field(default_factory=list)


class _PodSpec(UsagePodSpec, frozen=True):
    containers: list[_Container] = msgspec.field(default_factory=list)  # type: ignore[assignment]
    init_containers: list[_Container] = msgspec.field(default_factory=list)
    host_network: bool = False
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)


class _PodStatus(UsagePodStatus, frozen=True):
    pod_ip: str = msgspec.field(name="podIP", default="")


class ScrapedPod(UsagePod, frozen=True):
    """A pod of a workload, with the fields by which Prometheus reaches it."""

    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()

    @property
    def is_simulated(self) -> bool:
        """A simulated pod runs no program, so it would be a target that never answers."""
        return self.spec.node_selector.get(SIMULATED_LABEL) == "true"

    @property
    def labels(self) -> dict[str, str]:
        """Labels of all its series."""
        labels = self.metadata.labels
        return {
            "project": self.metadata.namespace,
            "workload": labels.get(WORKLOAD_LABEL, ""),
            "kind": labels.get(KIND_LABEL, ""),
            # Without the images of sidecars, so that a roll of the runtime begins no new series.
            "revision": labels.get(IN_PLACE_HASH_LABEL) or labels.get(TEMPLATE_HASH_LABEL, ""),
            "replica": self.metadata.name,
        }

    @property
    def ports(self) -> list[_ContainerPort]:
        containers = (*self.spec.containers, *self.spec.init_containers)
        return [port for container in containers for port in container.ports if port.protocol == "TCP"]


def oldest_first(pods: Iterable[ScrapedPod]) -> list[ScrapedPod]:
    """In a stable order, so that a new replica beyond a limit does not displace one that is shown."""
    return sorted(pods, key=lambda pod: (pod.metadata.creation_timestamp, pod.metadata.key))

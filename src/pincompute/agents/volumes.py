"""Derives the steps of the storage agent from the claims and volumes of a cluster. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from pincompute.api.names import STORAGE_PROVISIONER
from pincompute.objects.quantity import parse_quantity

Key = tuple[str, str]
"""Namespace (empty for a volume) and name."""

PROVISIONER = "volume.kubernetes.io/storage-provisioner"
"""Annotation by which Kubernetes asks the named provisioner for the volume of a claim."""
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""Annotation of the scheduler, for a storage class that waits for the first consumer."""


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    annotations: dict[str, str] = {}
    deletion_timestamp: str = ""


class Requests(msgspec.Struct, frozen=True):
    requests: dict[str, int | str] = {}


class ClaimSpec(msgspec.Struct, frozen=True, rename="camel"):
    access_modes: list[str] = []
    resources: Requests = Requests()
    storage_class_name: str = ""
    volume_mode: str = "Filesystem"
    volume_name: str = ""


class ClaimStatus(msgspec.Struct, frozen=True):
    phase: str = ""
    capacity: dict[str, int | str] = {}


class Claim(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()

    @property
    def key(self) -> Key:
        return self.metadata.namespace, self.metadata.name

    @property
    def size(self) -> int | str:
        return self.spec.resources.requests.get("storage", 0)


class HostPath(msgspec.Struct, frozen=True):
    path: str


class VolumeSpec(msgspec.Struct, frozen=True, rename="camel"):
    capacity: dict[str, int | str] = {}
    host_path: HostPath | None = None
    persistent_volume_reclaim_policy: str = ""


class VolumeStatus(msgspec.Struct, frozen=True):
    phase: str = ""


class Volume(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: VolumeSpec = VolumeSpec()
    status: VolumeStatus = VolumeStatus()

    @property
    def size(self) -> int | str:
        return self.spec.capacity.get("storage", 0)


class CreateVolume(NamedTuple):
    """Create the folder and the volume of a claim."""

    claim: Claim


class ExpandVolume(NamedTuple):
    """Set a larger capacity in a volume."""

    volume: str
    size: int | str


class ReportCapacity(NamedTuple):
    """Write the new capacity to the status of a claim."""

    claim: Key
    size: int | str


class DeleteVolume(NamedTuple):
    """Delete the folder of a released volume, and then the volume."""

    volume: str
    path: Path


VolumeStep = CreateVolume | ExpandVolume | ReportCapacity | DeleteVolume


def volume_steps(claims: Iterable[Claim], volumes: Mapping[Key, Volume]) -> Iterator[VolumeStep]:
    """Steps that the current state needs. An unfinished step is returned again in the next pass."""
    for claim in claims:
        if not claim.spec.volume_name:
            if _needs_volume(claim) and ("", volume_name(claim)) not in volumes:
                yield CreateVolume(claim)
        elif volume := volumes.get(("", claim.spec.volume_name)):
            yield from _expansion_steps(claim, volume)
    for volume in volumes.values():
        released = volume.status.phase == "Released" and not volume.metadata.deletion_timestamp
        if released and _provisioned_here(volume) and volume.spec.persistent_volume_reclaim_policy == "Delete":
            assert volume.spec.host_path, "volumes of this provisioner have a hostPath"
            yield DeleteVolume(volume.metadata.name, Path(volume.spec.host_path.path))


def unsupported_reason(claim: Claim) -> str:
    """Message why the claim cannot get a volume; empty if it can."""
    if claim.spec.volume_mode != "Filesystem":
        return f"volumeMode must be Filesystem: volumes of this class are folders, not {claim.spec.volume_mode} devices"
    return ""


def volume_name(claim: Claim) -> str:
    """Name by the claim's uid: creating the volume twice gives the same one."""
    return f"pvc-{claim.metadata.uid}"


def build_volume(claim: Claim, policy: str, folder: Path, node: str) -> Any:
    """PersistentVolume of a claim. `node` is the real node, where programs of the claim's pods find their files."""
    spec: dict[str, Any] = {
        "capacity": {"storage": claim.size},
        "accessModes": claim.spec.access_modes,
        "storageClassName": claim.spec.storage_class_name,
        "persistentVolumeReclaimPolicy": policy,
        "claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": claim.metadata.namespace,
            "name": claim.metadata.name,
            "uid": claim.metadata.uid,
        },
        "hostPath": {"path": str(folder), "type": "Directory"},
    }
    if node and claim.metadata.annotations.get(SELECTED_NODE, node) == node:
        only = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [only]}]}}
    metadata = {"name": volume_name(claim), "annotations": {PROVISIONED_BY: STORAGE_PROVISIONER}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}


def _needs_volume(claim: Claim) -> bool:
    requested = claim.metadata.annotations.get(PROVISIONER) == STORAGE_PROVISIONER
    return requested and claim.status.phase == "Pending" and not claim.metadata.deletion_timestamp


def _expansion_steps(claim: Claim, volume: Volume) -> Iterator[VolumeStep]:
    """Expands the volume first and reports the capacity afterwards: a claim must not show space that is missing."""
    if not _provisioned_here(volume) or claim.status.phase != "Bound":
        return
    if parse_quantity(volume.size) < parse_quantity(claim.size):
        yield ExpandVolume(volume.metadata.name, claim.size)
    elif parse_quantity(claim.status.capacity.get("storage", 0)) < parse_quantity(claim.size):
        yield ReportCapacity(claim.key, volume.size)


def _provisioned_here(volume: Volume) -> bool:
    return volume.metadata.annotations.get(PROVISIONED_BY) == STORAGE_PROVISIONER

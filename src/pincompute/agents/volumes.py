"""Volumes: the folders that claims ask for, worked out from the claims and volumes of a cluster. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from pincompute.api.names import STORAGE
from pincompute.objects.quantity import amount

Key = tuple[str, str]
"""Namespace (empty for a volume) and name."""

PROVISIONER = "volume.kubernetes.io/storage-provisioner"
"""Written into a claim by Kubernetes as soon as it wants a volume from whom it names."""
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
NODE = "volume.kubernetes.io/selected-node"
"""Written into a claim by the scheduler, where its class waits for a first pod."""


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


class Folder(msgspec.Struct, frozen=True):
    path: str


class VolumeSpec(msgspec.Struct, frozen=True, rename="camel"):
    capacity: dict[str, int | str] = {}
    host_path: Folder | None = None
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


class Make(NamedTuple):
    """A claim gets a folder and the volume that stands for it."""

    claim: Claim


class Widen(NamedTuple):
    """A volume holds more from now on."""

    volume: str
    size: int | str


class Tell(NamedTuple):
    """A claim is told how much it holds by now."""

    claim: Key
    size: int | str


class Remove(NamedTuple):
    """Nobody claims it any more: the folder goes, and then the volume."""

    volume: str
    path: Path


Step = Make | Widen | Tell | Remove


def steps(claims: Iterable[Claim], volumes: Mapping[Key, Volume]) -> Iterator[Step]:
    """Whatever was begun and not finished comes up again, until nothing is left to do."""
    for claim in claims:
        if not claim.spec.volume_name:
            if _asks(claim) and ("", name(claim)) not in volumes:
                yield Make(claim)
        elif volume := volumes.get(("", claim.spec.volume_name)):
            yield from _growth(claim, volume)
    for volume in volumes.values():
        released = volume.status.phase == "Released" and not volume.metadata.deletion_timestamp
        if released and _ours(volume) and volume.spec.persistent_volume_reclaim_policy == "Delete":
            assert volume.spec.host_path, "ours are folders"
            yield Remove(volume.metadata.name, Path(volume.spec.host_path.path))


def refusal(claim: Claim) -> str:
    """Why it cannot be given, as a sentence; empty where it can."""
    if claim.spec.volume_mode != "Filesystem":
        return f"a volume of this class is a folder, and volumeMode {claim.spec.volume_mode} asks for a bare device"
    return ""


def name(claim: Claim) -> str:
    """A claim's uid is nobody else's: made twice, it is the same one."""
    return f"pvc-{claim.metadata.uid}"


def volume(claim: Claim, policy: str, folder: Path, node: str) -> Any:
    """The PersistentVolume of a claim; `node` is the real one, whose programs find there what they wrote."""
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
    if node and claim.metadata.annotations.get(NODE, node) == node:
        only = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [only]}]}}
    metadata = {"name": name(claim), "annotations": {PROVISIONED_BY: STORAGE}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}


def _asks(claim: Claim) -> bool:
    asked = claim.metadata.annotations.get(PROVISIONER) == STORAGE
    return asked and claim.status.phase == "Pending" and not claim.metadata.deletion_timestamp


def _growth(claim: Claim, volume: Volume) -> Iterator[Step]:
    """First the volume, then the word to the claim: nobody is promised what is not there."""
    if not _ours(volume) or claim.status.phase != "Bound":
        return
    if amount(volume.size) < amount(claim.size):
        yield Widen(volume.metadata.name, claim.size)
    elif amount(claim.status.capacity.get("storage", 0)) < amount(claim.size):
        yield Tell(claim.key, volume.size)


def _ours(volume: Volume) -> bool:
    return volume.metadata.annotations.get(PROVISIONED_BY) == STORAGE

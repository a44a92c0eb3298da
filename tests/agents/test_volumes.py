"""Steps that the storage agent derives from claims and volumes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from pincompute.agents.volumes import (
    PROVISIONED_BY,
    PROVISIONER,
    SELECTED_NODE,
    Claim,
    CreateVolume,
    DeleteVolume,
    ExpandVolume,
    ReportCapacity,
    Volume,
    VolumeStep,
    build_volume,
    unsupported_reason,
    volume_steps,
)
from pincompute.api.names import STORAGE_PROVISIONER

PROVISIONER_ANNOTATION = {PROVISIONER: STORAGE_PROVISIONER}
SPEC = {"accessModes": ["ReadWriteOnce"], "storageClassName": "standard", "resources": {"requests": {"storage": "1Gi"}}}
BOUND = {**SPEC, "volumeName": "pvc-u1"}


def claim(annotations: Any = PROVISIONER_ANNOTATION, spec: Any = SPEC, status: Any = None) -> Claim:
    metadata = {"name": "data", "namespace": "me", "uid": "u1", "annotations": annotations}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status or {"phase": "Pending"}}, Claim)


def bound_volume(
    phase: str = "Bound", by: str = STORAGE_PROVISIONER, policy: str = "Delete", size: str = "1Gi"
) -> Volume:
    spec = {
        "hostPath": {"path": "/volumes/pvc-u1"},
        "persistentVolumeReclaimPolicy": policy,
        "capacity": {"storage": size},
    }
    metadata = {"name": "pvc-u1", "annotations": {PROVISIONED_BY: by}}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": {"phase": phase}}, Volume)


def steps(*claims: Claim, volumes: tuple[Volume, ...] = ()) -> list[VolumeStep]:
    return list(volume_steps(claims, {("", each.metadata.name): each for each in volumes}))


def test_creates_volume_once_kubernetes_asks_for_it():
    assert steps(claim()) == [CreateVolume(claim())]
    assert steps(claim(annotations={})) == []
    assert steps(claim(annotations={PROVISIONER: "example.com/other"})) == []
    assert steps(claim(), volumes=(bound_volume(),)) == []


def test_creates_no_volume_for_bound_or_lost_claim():
    assert (
        steps(claim(spec=BOUND, status={"phase": "Bound", "capacity": {"storage": "1Gi"}}), volumes=(bound_volume(),))
        == []
    )
    assert steps(claim(status={"phase": "Lost"})) == []


def test_expands_volume_before_reporting_capacity():
    more = {**BOUND, "resources": {"requests": {"storage": "2048Mi"}}}
    expanded = claim(spec=more, status={"phase": "Bound", "capacity": {"storage": "1Gi"}})
    assert steps(expanded, volumes=(bound_volume(),)) == [ExpandVolume("pvc-u1", "2048Mi")]
    assert steps(expanded, volumes=(bound_volume(size="2Gi"),)) == [ReportCapacity(("me", "data"), "2Gi")]
    reported = claim(spec=more, status={"phase": "Bound", "capacity": {"storage": "2Gi"}})
    assert steps(reported, volumes=(bound_volume(size="2Gi"),)) == []
    assert steps(expanded, volumes=(bound_volume(by="example.com/other"),)) == []


@pytest.mark.parametrize(
    "remaining",
    [
        bound_volume(),
        bound_volume("Available"),
        bound_volume("Released", policy="Retain"),
        bound_volume("Released", by="example.com/other"),
    ],
)
def test_never_deletes_claimed_retained_or_foreign_volume(remaining: Volume):
    assert steps(volumes=(remaining,)) == []


def test_deletes_released_volume():
    assert steps(volumes=(bound_volume("Released"),)) == [DeleteVolume("pvc-u1", Path("/volumes/pvc-u1"))]


def test_node_affinity_for_real_node():
    def nodes(node: str, annotations: dict[str, str] = PROVISIONER_ANNOTATION) -> Any:
        return build_volume(claim(annotations), "Delete", Path("/v"), node)["spec"].get("nodeAffinity")

    def chosen(node: str) -> dict[str, str]:
        return {**PROVISIONER_ANNOTATION, SELECTED_NODE: node}

    only = [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-main"]}]
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": only}]}}
    assert nodes("node-main", chosen("node-main")) == nodes("node-main") == affinity
    # Volumes of pods on simulated nodes have no place, so they get no affinity.
    assert nodes("node-main", chosen("simulated-0001")) is None
    assert nodes("", chosen("simulated-0001")) is None


def test_block_volume_is_unsupported():
    assert "not Block devices" in unsupported_reason(claim(spec={**SPEC, "volumeMode": "Block"}))
    assert unsupported_reason(claim()) == ""

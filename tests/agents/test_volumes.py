"""What claims and volumes ask of the agent, step by step, and what it never does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from pincompute.agents.volumes import (
    NODE,
    PROVISIONED_BY,
    PROVISIONER,
    Claim,
    Make,
    Remove,
    Step,
    Tell,
    Volume,
    Widen,
    refusal,
    steps,
    volume,
)
from pincompute.api.names import STORAGE

ASKED = {PROVISIONER: STORAGE}
SPEC = {"accessModes": ["ReadWriteOnce"], "storageClassName": "standard", "resources": {"requests": {"storage": "1Gi"}}}
BOUND = {**SPEC, "volumeName": "pvc-u1"}


def claim(annotations: Any = ASKED, spec: Any = SPEC, status: Any = None) -> Claim:
    metadata = {"name": "data", "namespace": "me", "uid": "u1", "annotations": annotations}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status or {"phase": "Pending"}}, Claim)


def held(phase: str = "Bound", by: str = STORAGE, policy: str = "Delete", size: str = "1Gi") -> Volume:
    spec = {
        "hostPath": {"path": "/volumes/pvc-u1"},
        "persistentVolumeReclaimPolicy": policy,
        "capacity": {"storage": size},
    }
    metadata = {"name": "pvc-u1", "annotations": {PROVISIONED_BY: by}}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": {"phase": phase}}, Volume)


def found(*claims: Claim, volumes: tuple[Volume, ...] = ()) -> list[Step]:
    return list(steps(claims, {("", each.metadata.name): each for each in volumes}))


def test_a_claim_gets_a_volume_once_kubernetes_asks_for_it():
    assert found(claim()) == [Make(claim())]
    assert found(claim(annotations={})) == []
    assert found(claim(annotations={PROVISIONER: "example.com/other"})) == []
    assert found(claim(), volumes=(held(),)) == []


def test_a_claim_that_has_a_volume_or_is_lost_gets_none():
    assert found(claim(spec=BOUND, status={"phase": "Bound", "capacity": {"storage": "1Gi"}}), volumes=(held(),)) == []
    assert found(claim(status={"phase": "Lost"})) == []


def test_a_claim_that_asks_for_more_gets_it_first_and_hears_of_it_then():
    more = {**BOUND, "resources": {"requests": {"storage": "2048Mi"}}}
    asks = claim(spec=more, status={"phase": "Bound", "capacity": {"storage": "1Gi"}})
    assert found(asks, volumes=(held(),)) == [Widen("pvc-u1", "2048Mi")]
    assert found(asks, volumes=(held(size="2Gi"),)) == [Tell(("me", "data"), "2Gi")]
    told = claim(spec=more, status={"phase": "Bound", "capacity": {"storage": "2Gi"}})
    assert found(told, volumes=(held(size="2Gi"),)) == []
    assert found(asks, volumes=(held(by="somebody else"),)) == []


@pytest.mark.parametrize(
    "left", [held(), held("Available"), held("Released", policy="Retain"), held("Released", by="somebody else")]
)
def test_a_volume_that_is_claimed_kept_or_not_ours_is_never_removed(left: Volume):
    assert found(volumes=(left,)) == []


def test_a_volume_that_nobody_claims_any_more_is_removed():
    assert found(volumes=(held("Released"),)) == [Remove("pvc-u1", Path("/volumes/pvc-u1"))]


def test_a_volume_is_on_the_real_node_when_its_first_pod_is_there():
    def nodes(node: str, annotations: dict[str, str] = ASKED) -> Any:
        return volume(claim(annotations), "Delete", Path("/v"), node)["spec"].get("nodeAffinity")

    def chosen(node: str) -> dict[str, str]:
        return {**ASKED, NODE: node}

    only = [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-main"]}]
    there = {"required": {"nodeSelectorTerms": [{"matchExpressions": only}]}}
    assert nodes("node-main", chosen("node-main")) == nodes("node-main") == there
    # What a simulated node holds is nowhere, and so everywhere.
    assert nodes("node-main", chosen("simulated-0001")) is None
    assert nodes("", chosen("simulated-0001")) is None


def test_a_bare_device_is_refused_in_words():
    assert "volumeMode Block" in refusal(claim(spec={**SPEC, "volumeMode": "Block"}))
    assert refusal(claim()) == ""

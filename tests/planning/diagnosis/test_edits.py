"""Edits that `pin why` proposes: each can be typed, and a node, a quota or a claim accepts the result."""

from __future__ import annotations

import json
import shlex
from typing import Any

import msgspec
import pytest

from pincompute.api.service import PinterestService
from pincompute.base.problem import Problem
from pincompute.base.reasons import NO_NODE_MATCHES, UNSCHEDULABLE
from pincompute.planning.diagnosis.capacity import Node, PodRequirements, eligible_nodes
from pincompute.planning.diagnosis.claim_edits import create_claim_command, replace_claim_command
from pincompute.planning.diagnosis.claims import Claim, StorageClass, StorageEvidence, Volume
from pincompute.planning.diagnosis.evidence import Evidence, add_evidence
from pincompute.planning.diagnosis.free_capacity import ClusterCapacity
from pincompute.planning.diagnosis.quotas import quota_edit
from pincompute.planning.diagnosis.rejection_remedies import limit_range_remedy, limit_ratio_remedy
from planning.diagnosis.test_evidence import node, pod as pending_pod
from planning.diagnosis.test_explain import snapshot

SSD, HDD = {"disk": "ssd"}, {"disk": "hdd"}
NODES = [node("a", labels={**SSD, "zone": "a"}), node("b", labels={**SSD, "zone": "b"}), node("c", labels=HDD)]


def service_of(template: dict[str, Any] | None = None, **spec: Any) -> PinterestService:
    whole = {"image": "own:1", "port": 8080, **spec, "template": {"spec": template or {}}}
    return msgspec.convert({"metadata": {"name": "own", "namespace": "me"}, "spec": whole}, PinterestService)


def next_of(owner: PinterestService, pending: PodRequirements, nodes: list[Node]) -> str:
    reason = NO_NODE_MATCHES if not eligible_nodes(pending, nodes) else UNSCHEDULABLE
    evidence = Evidence(pending, ClusterCapacity(nodes))
    return add_evidence(snapshot(owner), Problem(reason, "q", next="before"), evidence).next


@pytest.mark.parametrize(
    ("selector", "next_"),
    [
        ({"disk": "sdd"}, "pin edit own --set template.spec.nodeSelector.disk=ssd"),
        ({"disk": "tape"}, "pin edit own --set template.spec.nodeSelector.disk=ssd"),
        ({"example.com/dsik": "ssd"}, "pin edit own --remove 'template.spec.nodeSelector[example.com/dsik]'"),
        (
            {"dsik": "ssd", "disk": "sdd"},
            "pin edit own --remove template.spec.nodeSelector.dsik --set template.spec.nodeSelector.disk=ssd",
        ),
        # Each of the labels exists, and no node has both.
        ({"disk": "hdd", "zone": "a"}, "pin edit own --remove template.spec.nodeSelector.disk"),
        ({"disk": "ssd"}, "before"),
    ],
)
def test_corrects_a_selector_that_no_node_matches(selector: dict[str, str], next_: str) -> None:
    assert next_of(service_of({"nodeSelector": selector}), pending_pod(nodeSelector=selector), NODES) == next_


def test_leaves_labels_that_the_platform_requires() -> None:
    assert next_of(service_of(), pending_pod(nodeSelector={"pool": "x"}), NODES) == "before"


def test_label_value_that_is_no_text_in_yaml_is_quoted() -> None:
    gpu = [node("g", labels={"gpu": "true"})]
    selector = {"gpu": "yes"}
    found = next_of(service_of({"nodeSelector": selector}), pending_pod(nodeSelector=selector), gpu)
    assert shlex.split(found)[-1] == 'template.spec.nodeSelector.gpu="true"'


def test_removes_an_affinity_that_no_node_meets() -> None:
    wants = {"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["128"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [wants]}}}
    found = next_of(service_of({"affinity": affinity}), pending_pod(affinity=affinity), NODES)
    assert found == "pin edit own --remove template.spec.affinity.nodeAffinity"


def test_corrects_the_value_of_a_toleration() -> None:
    red = [node("a", taints=[{"key": "team", "value": "red", "effect": "NoSchedule"}])]
    blue = [{"key": "team", "operator": "Equal", "value": "blue", "effect": "NoSchedule"}]
    found = next_of(service_of({"tolerations": blue}), pending_pod(tolerations=blue), red)
    assert found == "pin edit own --set 'template.spec.tolerations[team].value=red'"
    assert next_of(service_of(), pending_pod(), red) == "before"


def test_removes_a_resource_that_no_node_has() -> None:
    resources = {"requests": {"example.com/fpga": "1"}, "limits": {"example.com/fpga": "1"}}
    pending = pending_pod()
    pending.spec.containers[0].resources.requests["example.com/fpga"] = 1
    found = next_of(service_of({"containers": [{"name": "own", "resources": resources}]}), pending, NODES)
    path = "template.spec.containers[own].resources"
    assert shlex.split(found)[4::2] == [f"{path}.{each}[example.com/fpga]" for each in ("requests", "limits")]


def test_requests_what_fits_by_the_field_that_the_file_has() -> None:
    assert next_of(service_of(cpu=64), pending_pod(cpu="64"), NODES) == "pin edit own --set cpu=4"
    written = {"containers": [{"name": "own", "resources": {"requests": {"cpu": "64"}}}]}
    found = next_of(service_of(written), pending_pod(cpu="64"), NODES)
    assert found == "pin edit own --set 'template.spec.containers[own].resources.requests.cpu=4'"


def test_bound_of_a_range_goes_to_the_containers_that_have_the_resource() -> None:
    side = {"name": "side", "resources": {"limits": {"ephemeral-storage": "9Ti"}}}
    found = limit_range_remedy(service_of({"containers": [side]}), "ephemeral-storage", "8Gi")
    assert shlex.split(found)[-1] == "template.spec.containers[side].resources.limits[ephemeral-storage]=8Gi"
    assert limit_range_remedy(service_of(cpu=4), "cpu", "2") == "pin edit own --set cpu=2"


def test_ratio_of_a_range_raises_the_request() -> None:
    side = {"name": "side", "resources": {"requests": {"cpu": "10m"}, "limits": {"cpu": "1"}}}
    found = limit_ratio_remedy(service_of({"containers": [side]}), "cpu", "2")
    assert shlex.split(found)[-1] == "template.spec.containers[side].resources.requests.cpu=0.5"
    assert limit_ratio_remedy(service_of(), "cpu", "2") == ""


@pytest.mark.parametrize(
    ("spec", "requested", "used", "limited", "next_"),
    [
        ({"memory": "16Mi"}, {"memory": "16Mi"}, {"memory": "0"}, {"memory": "8Mi"}, "--set memory=8Mi"),
        ({"cpu": 2}, {"requests.cpu": "2"}, {"requests.cpu": "2"}, {"requests.cpu": "3500m"}, "--set cpu=1.5"),
        ({"cpu": 2, "replicas": 2}, {"cpu": "2"}, {}, {"cpu": "3"}, "--set cpu=1.5"),
        # A quarter is the least that is proposed.
        ({"memory": "1Gi"}, {"memory": "1Gi"}, {}, {"memory": "64Mi"}, ""),
        ({}, {"pods": "1"}, {"pods": "3"}, {"pods": "3"}, ""),
        ({"memory": "1Gi"}, {"memory": "1Gi"}, {"memory": "4Gi"}, {"memory": "4Gi"}, ""),
    ],
)
def test_asks_for_what_a_quota_has_left(
    spec: dict[str, Any], requested: dict[str, str], used: dict[str, str], limited: dict[str, str], next_: str
) -> None:
    assert quota_edit(service_of(**spec), requested, used, limited) == (f"pin edit own {next_}" if next_ else "")


def storage(claim: dict[str, Any], *, volumes: list[Any] = [], default: bool = True) -> tuple[Claim, StorageEvidence]:  # noqa: B006
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    standard = {"metadata": {"name": "standard", "annotations": annotations}, "provisioner": "example.com/disk"}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}, **claim}
    found = msgspec.convert({"metadata": {"name": "d", "namespace": "me"}, "spec": spec}, Claim)
    evidence = StorageEvidence(
        ["d"], [found], msgspec.convert(volumes, list[Volume]), msgspec.convert([standard], list[StorageClass])
    )
    return found, evidence


def spec_of(command: str, verb: str) -> dict[str, Any]:
    echo, _, kubectl = command.rpartition(" | ")
    assert kubectl == f"kubectl {verb} -f -"
    claim = json.loads(shlex.split(echo)[1])
    assert (claim["kind"], claim["metadata"]) == ("PersistentVolumeClaim", {"name": "d", "namespace": "me"})
    spec: dict[str, Any] = claim["spec"]
    return spec


def volume(name: str, size: str, *modes: str, **spec: Any) -> dict[str, Any]:
    content = {"accessModes": list(modes), "capacity": {"storage": size}, "storageClassName": "local", **spec}
    return {"metadata": {"name": name}, "spec": content, "status": {"phase": "Available"}}


def test_claim_of_an_unknown_class_gets_the_nearest_one() -> None:
    spec = spec_of(replace_claim_command(*storage({"storageClassName": "standart"})), "replace --force")
    assert (spec["storageClassName"], spec["resources"]) == ("standard", {"requests": {"storage": "2Gi"}})


def test_claim_gets_what_the_nearest_free_volume_has() -> None:
    volumes = [volume("a", "1Gi", "ReadWriteOnce"), volume("b", "9Gi", "ReadWriteMany", claimRef={"name": "x"})]
    claim = storage({"storageClassName": "local", "selector": {"matchLabels": {"x": "y"}}}, volumes=volumes)
    spec = spec_of(replace_claim_command(*claim), "replace --force")
    assert spec["resources"] == {"requests": {"storage": "1Gi"}}
    assert "selector" not in spec
    claim = storage({"storageClassName": "local"}, volumes=[volume("c", "9Gi", "ReadWriteMany")])
    spec = spec_of(replace_claim_command(*claim), "replace --force")
    assert (spec["accessModes"], spec["resources"]) == (["ReadWriteMany"], {"requests": {"storage": "2Gi"}})


def test_claim_that_waits_for_the_default_class_is_not_replaced() -> None:
    assert replace_claim_command(*storage({})) == ""
    assert replace_claim_command(*storage({"storageClassName": "gone"}, default=False)) != ""


def test_missing_claim_is_created_of_the_default_class() -> None:
    _, evidence = storage({})
    assert spec_of(create_claim_command("me", "d", evidence), "create")["storageClassName"] == "standard"
    assert create_claim_command("me", "d", evidence._replace(classes=[])) == ""

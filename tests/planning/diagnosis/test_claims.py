"""Claims that keep a pod from a node: the claim by name, and which of its demands nothing meets."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pincompute.planning.diagnosis.capacity import Node
from pincompute.planning.diagnosis.claims import Claim, StorageClass, StorageEvidence, Volume, explain_claims

FAST = msgspec.convert({"metadata": {"name": "fast"}, "provisioner": "example.com/disk"}, StorageClass)
MANUAL = msgspec.convert({"metadata": {"name": "manual"}, "provisioner": "kubernetes.io/no-provisioner"}, StorageClass)
DEFAULT = msgspec.convert(
    {
        "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "example.com/disk",
    },
    StorageClass,
)
ANY_MANUAL = {"storageClassName": "manual", "accessModes": ["ReadWriteOnce"]}


def claim(size: str = "1Gi", phase: str = "Pending", **spec: Any) -> Claim:
    whole = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    content = {"metadata": {"name": "data", "namespace": "me"}, "spec": whole, "status": {"phase": phase}}
    return msgspec.convert(content, Claim)


def volume(name: str = "v-1", size: str = "1Gi", phase: str = "Available", **fields: Any) -> Volume:
    labels = fields.pop("labels", {})
    spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}, "storageClassName": "manual", **fields}
    content = {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"phase": phase}}
    return msgspec.convert(content, Volume)


def node(name: str, zone: str) -> Node:
    return msgspec.convert({"metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}}}, Node)


def in_zone(zone: str) -> dict[str, Any]:
    expression = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


BOUND = claim(phase="Bound", volumeName="v-1")
OF_ANOTHER = {"claimRef": {"namespace": "secret-project", "name": "secret-claim"}}


@pytest.mark.parametrize(
    ("claims", "volumes", "text"),
    [
        ([], [], "does not exist"),
        (
            [claim(storageClassName="fats")],
            [],
            "names storage class fats, which does not exist; the classes are fast, manual and standard (default)",
        ),
        ([claim()], [], "waits for provisioner example.com/disk of storage class standard to create its volume"),
        (
            [claim(storageClassName="fast")],
            [],
            "waits for provisioner example.com/disk of storage class fast to create its volume",
        ),
        ([claim(volumeName="v-9")], [volume()], "names volume v-9, which does not exist"),
        (
            [claim(volumeName="v-1")],
            [volume(**OF_ANOTHER)],
            "names volume v-1, which belongs to another claim",
        ),
        (
            [claim(storageClassName="manual")],
            [volume(phase="Bound", **OF_ANOTHER)],
            "waits for a volume of class manual: there is no free one, and none is made automatically",
        ),
        (
            [claim(storageClassName="")],
            [volume()],
            "waits for a volume of no class: there is no free one, and none is made automatically",
        ),
        (
            [claim(storageClassName="manual", accessModes=["ReadWriteMany"])],
            [volume()],
            "requires ReadWriteMany, and the free volumes of class manual allow ReadWriteOnce",
        ),
        (
            [claim(storageClassName="manual", volumeMode="Block")],
            [volume()],
            "requires a volume of mode Block, and the free ones are Filesystem",
        ),
        (
            [claim(storageClassName="manual", selector={"matchLabels": {"disk": "ssd"}})],
            [volume(), volume("v-2", labels={"disk": "hdd"})],
            "selects volumes by labels that none of the 2 free ones of class manual has",
        ),
        (
            [claim("10Gi", storageClassName="manual")],
            [volume(), volume("v-2", "3Gi")],
            "requests 10Gi, and the largest free volume of class manual has 3Gi",
        ),
        ([claim(storageClassName="manual")], [volume()], ""),
        ([BOUND], [], "is bound to volume v-1, which does not exist any more"),
        ([BOUND], [volume()], ""),
        (
            [BOUND],
            [volume(nodeAffinity=in_zone("c"))],
            "is on volume v-1, which only nodes with topology.kubernetes.io/zone=c reach, and there is none",
        ),
        (
            [BOUND],
            [volume(nodeAffinity=in_zone("b"))],
            "is on volume v-1, which only n-2 can reach (topology.kubernetes.io/zone=b)",
        ),
    ],
)
def test_names_the_demand_that_nothing_meets(claims: list[Claim], volumes: list[Volume], text: str) -> None:
    evidence = StorageEvidence(
        ("data",), claims, volumes, (FAST, MANUAL, DEFAULT), (node("n-1", "a"), node("n-2", "b"))
    )
    assert explain_claims(evidence) == (f"claim data {text}" if text else "")


@pytest.mark.parametrize(
    ("classes", "text"),
    [
        ((), "it has no storage class"),
        ((FAST,), "the only class is fast"),
    ],
)
def test_says_that_there_is_no_default_class(classes: tuple[StorageClass, ...], text: str) -> None:
    found = explain_claims(StorageEvidence(("data",), (claim(),), (), classes))
    assert found == f"claim data names no storage class, and the cluster has no default one; {text}"


def test_volumes_of_other_projects_are_not_named() -> None:
    """A claim that names the volume of another project does not reveal its owner."""
    found = explain_claims(StorageEvidence(("data",), (claim(volumeName="v-1"),), (volume(**OF_ANOTHER),), (FAST,)))
    assert "secret" not in found

"""Who has how much, as `why` tells it where nodes or a quota stand against a copy."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pincompute.base.problem import Problem
from pincompute.base.reasons import CRASH_LOOP, NO_NODE_MATCHES, QUOTA_USED_UP, UNSCHEDULABLE
from pincompute.planning.why.evidence import Numbers, counted
from pincompute.planning.why.guests import Guest, Node
from pincompute.planning.why.room import Room, candidates
from planning.people.test_answer import owner, snapshot

TAINT = {"key": "team", "value": "ads", "effect": "NoSchedule"}


def node(name: str, cpu: str = "4", memory: str = "16Gi", *, labels: dict[str, str] | None = None, **spec: Any) -> Node:
    said = {"metadata": {"name": name, "labels": labels or {}}, "spec": spec}
    return msgspec.convert({**said, "status": {"allocatable": {"cpu": cpu, "memory": memory}}}, Node)


def pod(name: str = "hello-1", on: str = "", cpu: str = "1", memory: str = "1Gi", **more: Any) -> Guest:
    container = {"name": "own", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    labels = {"pinterest.com/workload": name.rpartition("-")[0], "pinterest.com/tier": more.pop("tier", "on-demand")}
    spec = {"nodeName": on, "containers": [container], **more}
    return msgspec.convert({"metadata": {"name": name, "labels": labels}, "spec": spec}, Guest)


def told(waits: Guest, *nodes: Node, on_them: tuple[Guest, ...] = ()) -> str:
    problem = Problem(UNSCHEDULABLE, "no node can take a copy", note="coarse")
    first, *more = counted(snapshot(owner()), problem, Numbers(waits, Room(nodes, on_them))).note.splitlines()
    assert first == "coarse"
    return "".join(more)


@pytest.mark.parametrize(
    ("waits", "words"),
    [
        (pod(cpu="4000"), "a copy needs 4000 cpu, and the largest of 2 nodes that it may run on has 4 cpu"),
        (
            pod(cpu="3", memory="9Gi"),
            "a copy needs 3 cpu, and large has 1.5 of 4 cpu free; a copy needs 9Gi memory, and large has 8Gi of 16Gi memory free",  # noqa: E501
        ),
        (pod(cpu="2"), "a copy needs 2 cpu, and large has 1.5 of 4 cpu free, the most of 2 nodes"),
        (
            pod(nodeSelector={"disk": "ssd"}),
            "it asks for disk=ssd, and nodes have disk=hdd",
        ),
        (pod(nodeSelector={"gpu": "big"}), "it asks for gpu=big, and none of 3 nodes has the label gpu"),
        # What runs beside the program takes room, too, and so does what runs before it, if that is more.
        (
            pod(initContainers=[{"restartPolicy": "Always", "resources": {"requests": {"cpu": "1500m"}}}]),
            "a copy needs 2.5 cpu, and large has 1.5 of 4 cpu free",
        ),
        (
            pod(initContainers=[{"resources": {"requests": {"cpu": "3"}}}]),
            "a copy needs 3 cpu, and large has 1.5 of 4 cpu free",
        ),
        # It would fit: the scheduler knows more than its numbers.
        (pod(), ""),
    ],
)
def test_the_nodes_are_told_in_numbers(waits: Guest, words: str) -> None:
    nodes = (node("large"), node("small", "2", "8Gi"), node("ads", labels={"disk": "hdd"}, taints=[TAINT]))
    taken = (pod("web-1", "large", "2500m", "8Gi"), pod("db-0", "small", "1", "1Gi"))
    assert told(waits, *nodes, on_them=taken) == words


def test_affinity_taints_and_emptied_nodes_are_told() -> None:
    wants = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [wants]}}}
    nodes = [node(f"n{each}", labels={"zone": f"z{each}"}) for each in range(7)]
    words = "it asks for zone=a or b, and nodes have zone=z0, z1, z2, z3, z4 and 2 more"
    assert told(pod(affinity=affinity), *nodes) == words
    assert told(pod(), node("ads", taints=[TAINT])) == "1 of 1 nodes have the taint team=ads:NoSchedule"
    assert told(pod()) == "the cluster has no node"
    tolerant = pod(tolerations=[{"key": "team", "operator": "Equal", "value": "ads"}])
    emptied = node("emptied", unschedulable=True)
    fit = [node("ads", taints=[TAINT]), node("tight", "500m"), emptied]
    assert [each.metadata.name for each in candidates(tolerant, fit)] == ["ads"]
    assert candidates(pod(), fit) == []


def test_who_uses_a_quota_is_told_the_greatest_first() -> None:
    pods = (pod("web-1", cpu="2"), pod("web-2", cpu="2"), pod("resize-1", cpu="500m"), pod("db-0", tier="reserved"))
    note = "a copy needs 2 cpu, and 4500m of 5 are used"
    for problem, words in (
        (Problem(QUOTA_USED_UP, "q", note=note), f"{note}\ncpu used by web (4) and resize (0.5)"),
        (
            Problem(QUOTA_USED_UP, "q", note="3 of 3 pods are used"),
            "3 of 3 pods are used\npods used by web (2) and resize (1)",
        ),
        (Problem(CRASH_LOOP, "q", note=note), note),
        (Problem(NO_NODE_MATCHES, "q", note=note), note),
    ):
        assert counted(snapshot(owner()), problem, Numbers(project=pods)).note == words
    assert counted(snapshot(owner()), Problem(QUOTA_USED_UP, "q", note=note), Numbers()).note == note

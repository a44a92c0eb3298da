"""Preview of the capacity for a planned workload."""

from __future__ import annotations

from typing import Any

import msgspec

from pincompute.objects.content import Object
from pincompute.planning.diagnosis.capacity import Node, PodRequirements
from pincompute.planning.diagnosis.free_capacity import MAX_COUNTED_NODES, ClusterCapacity
from pincompute.planning.views.capacity_preview import describe_free_capacity, planned_pods


def deployment(cpu: str = "1", **pod: Any) -> Object:
    container = {"name": "web", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    template: Object = {"metadata": {}, "spec": {"containers": [container], **pod}}
    return {"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 2, "template": template}}


def node(name: str, cpu: str = "4", pods: str = "110") -> Node:
    has = {"cpu": cpu, "memory": "16Gi", "pods": pods}
    metadata = {"name": name, "labels": {"zone": name}}
    return msgspec.convert({"metadata": metadata, "status": {"allocatable": has}}, Node)


def running_pod(on: str, cpu: str, phase: str = "Running") -> PodRequirements:
    container = {"name": "own", "resources": {"requests": {"cpu": cpu}}}
    spec = {"nodeName": on, "containers": [container]}
    content = {"metadata": {"name": "other"}, "spec": spec, "status": {"phase": phase}}
    return msgspec.convert(content, PodRequirements)


def preview(capacity: ClusterCapacity, *natives: Object) -> list[str]:
    return list(describe_free_capacity(planned_pods(natives or [deployment()]), capacity))


def test_counts_replicas_on_each_node() -> None:
    pods = [running_pod("a", "1.5"), running_pod("b", "3.5"), running_pod("a", "4", phase="Succeeded")]
    assert preview(ClusterCapacity([node("a"), node("b")], pods)) == ["2 more replicas fit on 1 node"]
    assert preview(ClusterCapacity([node("a"), node("b"), node("c", cpu="1")], pods)) == [
        "3 more replicas fit on 2 nodes"
    ]
    # The number of pods of a node is limited, too.
    assert preview(ClusterCapacity([node("a", pods="2")], [running_pod("a", "0")])) == ["1 more replica fits on 1 node"]
    assert preview(ClusterCapacity([node("a")]), deployment(nodeSelector={"zone": "a"})) == [
        "4 more replicas fit on 1 node"
    ]


def test_explains_in_numbers_if_none_fits() -> None:
    assert preview(ClusterCapacity([node("a"), node("b")]), deployment("9")) == [
        "no more replicas fit now: a replica requests 9 cpu, the largest of 2 eligible nodes has 4 cpu"
    ]
    full = ClusterCapacity([node("a")], [running_pod("a", "3.5")])
    assert preview(full) == ["no more replicas fit now: a replica requests 1 cpu, a has 0.5 of 4 cpu free"]
    assert preview(ClusterCapacity([node("a")]), deployment(nodeSelector={"zone": "b"})) == [
        "no more replicas fit now: it requires zone=b, and nodes have zone=a"
    ]
    assert preview(ClusterCapacity([node("a", pods="1")], [running_pod("a", "0")])) == [
        "no more replicas fit now: no node has all that it requests free at once"
    ]


def test_counts_only_the_largest_nodes() -> None:
    many = [node(f"n{number}") for number in range(MAX_COUNTED_NODES + 1)]
    assert preview(ClusterCapacity(many)) == [
        f"at least {4 * MAX_COUNTED_NODES} more replicas fit on the {MAX_COUNTED_NODES} largest nodes"
    ]


def test_names_each_object_and_skips_daemons() -> None:
    two = [deployment(), {**deployment("2"), "metadata": {"name": "other"}}]
    assert preview(ClusterCapacity([node("a")]), *two) == [
        "4 more replicas of Deployment/web fit on 1 node",
        "2 more replicas of Deployment/other fit on 1 node",
    ]
    assert preview(ClusterCapacity([node("a")]), {**deployment(), "kind": "DaemonSet"}) == []
    assert preview(ClusterCapacity()) == []

"""Options for simulated nodes are parsed and validated."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as some

from pincompute.base.problem import Refused
from pincompute.base.reasons import NODES_INVALID
from pincompute.engine.nodes.simulated_nodes import simulated_node
from pincompute.engine.nodes.simulated_spec import MAX_NODES, MAX_ZONES, SimulatedNodes, apply_node_options
from pincompute.objects.content import Object


@given(
    count=some.integers(0, MAX_NODES),
    cpu=some.integers(1, 9999),
    memory=some.integers(1, 999999),
    unit=some.sampled_from(("Mi", "Gi", "Ti")),
    zones=some.integers(1, MAX_ZONES),
)
def test_accepts_valid_options_and_keeps_values(count: int, cpu: int, memory: int, unit: str, zones: int):
    parsed = apply_node_options(SimulatedNodes(), count, f"{cpu}cpu,{memory}{unit}", zones)
    assert parsed == SimulatedNodes(count=count, cpu=str(cpu), memory=f"{memory}{unit}", zones=zones)
    assert apply_node_options(parsed, None, None, None) == parsed


@given(some.text(min_size=1).filter(lambda text: "cpu," not in text))
def test_rejects_other_shapes_with_example(shape: str):
    with pytest.raises(Refused) as refused:
        apply_node_options(SimulatedNodes(), None, shape, None)
    assert refused.value.problems[0].next == "--node-shape 32cpu,128Gi"


@pytest.mark.parametrize(
    "shape", ["32", "32cpu", "0cpu,1Gi", "32cpu,128GB", "128Gi,32cpu", " 32cpu,128Gi", "32cpu,128Gi\n"]
)
def test_rejects_invalid_shapes(shape: str):
    with pytest.raises(Refused):
        apply_node_options(SimulatedNodes(), None, shape, None)


def test_reports_all_invalid_options():
    with pytest.raises(Refused) as refused:
        apply_node_options(SimulatedNodes(), -1, "32", 0)
    assert [problem.reason for problem in refused.value.problems] == [NODES_INVALID] * 3
    assert [problem.what.split()[0] for problem in refused.value.problems] == ["--nodes", "--zones", "--node-shape"]


def test_zones_are_assigned_round_robin():
    wanted = SimulatedNodes(count=5, cpu="8", memory="16Gi", zones=2)
    nodes: list[Object] = [simulated_node(number, wanted) for number in range(wanted.count)]
    assert [each["metadata"]["labels"]["topology.kubernetes.io/zone"][-1] for each in nodes] == [
        "1",
        "2",
        "1",
        "2",
        "1",
    ]
    assert nodes[0]["metadata"]["name"] == "simulated-0001"
    assert nodes[0]["status"]["allocatable"] == {"cpu": "8", "memory": "16Gi", "pods": "110"}
    assert nodes[0]["spec"]["taints"] == [{"key": "pinterest.com/simulated", "value": "true", "effect": "NoSchedule"}]

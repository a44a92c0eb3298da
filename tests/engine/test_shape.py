"""Simulated nodes as a person words them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from pincompute.base.problem import Refused
from pincompute.base.reasons import NODES_INVALID
from pincompute.engine.nodes.shape import MOST_NODES, MOST_ZONES, Simulated, change
from pincompute.engine.nodes.simulated_nodes import node
from pincompute.objects.content import Object


@given(
    count=some.integers(0, MOST_NODES),
    cpu=some.integers(1, 9999),
    memory=some.integers(1, 999999),
    unit=some.sampled_from(("Mi", "Gi", "Ti")),
    zones=some.integers(1, MOST_ZONES),
)
def test_what_makes_sense_is_taken_as_it_is(count: int, cpu: int, memory: int, unit: str, zones: int):
    seen = change(Simulated(), count, f"{cpu}cpu,{memory}{unit}", zones)
    assert seen == Simulated(count=count, cpu=str(cpu), memory=f"{memory}{unit}", zones=zones)
    assert change(seen, None, None, None) == seen


@given(some.text(min_size=1).filter(lambda text: "cpu," not in text))
def test_any_other_shape_is_refused_with_an_example(shape: str):
    with pytest.raises(Refused) as refused:
        change(Simulated(), None, shape, None)
    assert refused.value.problems[0].next == "--node-shape 32cpu,128Gi"


@pytest.mark.parametrize(
    "shape", ["32", "32cpu", "0cpu,1Gi", "32cpu,128GB", "128Gi,32cpu", " 32cpu,128Gi", "32cpu,128Gi\n"]
)
def test_these_shapes_are_refused(shape: str):
    with pytest.raises(Refused):
        change(Simulated(), None, shape, None)


def test_everything_that_is_wrong_is_told_at_once():
    with pytest.raises(Refused) as refused:
        change(Simulated(), -1, "32", 0)
    assert [problem.reason for problem in refused.value.problems] == [NODES_INVALID] * 3
    assert [problem.what.split()[0] for problem in refused.value.problems] == ["--nodes", "--zones", "--node-shape"]


def test_nodes_take_turns_in_the_zones():
    wanted = Simulated(count=5, cpu="8", memory="16Gi", zones=2)
    nodes: list[Object] = [node(number, wanted) for number in range(wanted.count)]
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

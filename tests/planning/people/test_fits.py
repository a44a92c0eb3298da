"""Where what is planned would find room, as a person is told who is about to say yes."""

from __future__ import annotations

from typing import Any

import msgspec

from pincompute.objects.content import Object
from pincompute.planning.people.fits import coming, fits
from pincompute.planning.why.guests import Guest, Node
from pincompute.planning.why.room import MOST, Room


def deployment(cpu: str = "1", **pod: Any) -> Object:
    container = {"name": "web", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    template: Object = {"metadata": {}, "spec": {"containers": [container], **pod}}
    return {"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 2, "template": template}}


def node(name: str, cpu: str = "4", pods: str = "110") -> Node:
    has = {"cpu": cpu, "memory": "16Gi", "pods": pods}
    said = {"metadata": {"name": name, "labels": {"zone": name}}, "status": {"allocatable": has}}
    return msgspec.convert(said, Node)


def there(on: str, cpu: str, phase: str = "Running") -> Guest:
    container = {"name": "own", "resources": {"requests": {"cpu": cpu}}}
    said = {"metadata": {"name": "other"}, "spec": {"nodeName": on, "containers": [container]}}
    return msgspec.convert({**said, "status": {"phase": phase}}, Guest)


def told(room: Room, *natives: Object) -> list[str]:
    return list(fits(coming(natives or [deployment()]), room))


def test_copies_are_counted_node_by_node() -> None:
    guests = [there("a", "1.5"), there("b", "3.5"), there("a", "4", phase="Succeeded")]
    assert told(Room([node("a"), node("b")], guests)) == ["2 more copies on 1 node"]
    assert told(Room([node("a"), node("b"), node("c", cpu="1")], guests)) == ["3 more copies on 2 nodes"]
    # A node takes so many pods, whatever they ask for.
    assert told(Room([node("a", pods="2")], [there("a", "0")])) == ["1 more copy on 1 node"]
    assert told(Room([node("a")]), deployment(nodeSelector={"zone": "a"})) == ["4 more copies on 1 node"]


def test_why_there_is_none_is_told_in_numbers() -> None:
    assert told(Room([node("a"), node("b")]), deployment("9")) == [
        "no more copies now: a copy needs 9 cpu, and the largest of 2 nodes that it may run on has 4 cpu"
    ]
    full = Room([node("a")], [there("a", "3.5")])
    assert told(full) == ["no more copies now: a copy needs 1 cpu, and a has 0.5 of 4 cpu free"]
    assert told(Room([node("a")]), deployment(nodeSelector={"zone": "b"})) == [
        "no more copies now: it asks for zone=b, and nodes have zone=a"
    ]
    assert told(Room([node("a", pods="1")], [there("a", "0")])) == [
        "no more copies now: no node has all of what it needs free at once"
    ]


def test_of_many_nodes_some_are_counted() -> None:
    many = [node(f"n{number}") for number in range(MOST + 1)]
    assert told(Room(many)) == [f"at least {4 * MOST} more copies on the {MOST} largest nodes"]


def test_of_several_sorts_each_is_named_and_a_daemon_asks_for_none() -> None:
    two = [deployment(), {**deployment("2"), "metadata": {"name": "other"}}]
    assert told(Room([node("a")]), *two) == [
        "4 more copies of Deployment/web on 1 node",
        "2 more copies of Deployment/other on 1 node",
    ]
    assert told(Room([node("a")]), {**deployment(), "kind": "DaemonSet"}) == []
    assert told(Room()) == []

"""The nodes in numbers: what they have, what is left of it, and what a copy needs. Read when a person asks, and never
in the loop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from pincompute.planning.why.guests import Guest, Node, against, bare, expressions, open_to, shown, too_small
from pincompute.planning.why.words import some

MOST = 10
"""Nodes whose pods are counted, those with the most first: whoever asks waits for it."""


class Room(NamedTuple):
    """What is known of the nodes."""

    nodes: Sequence[Node] = ()
    guests: Sequence[Guest] = ()
    """Of those nodes that were counted."""

    def left(self, node: Node, resource: str) -> Fraction:
        here = (each for each in self.guests if each.there and each.spec.node_name == node.metadata.name)
        return node.has(resource) - sum((each.needs(resource) for each in here), Fraction(0))


def candidates(guest: Guest, nodes: Iterable[Node]) -> list[Node]:
    """Nodes that it may run on and that would hold it if they were empty, the largest first."""
    fit = [each for each in open_to(guest, nodes) if not too_small(guest, each)]
    return sorted(fit, key=lambda each: (-each.has("cpu"), -each.has("memory"), each.metadata.name))


class Fit(NamedTuple):
    """How many more copies there is room for, and on how many nodes."""

    copies: int
    nodes: int
    all_counted: bool
    """There may be more on nodes whose pods nobody has counted."""


def fit(guest: Guest, room: Room) -> Fit:
    there = candidates(guest, room.nodes)
    free = [_free(guest, room, each) for each in there[:MOST]]
    return Fit(sum(free), sum(each > 0 for each in free), len(there) <= MOST)


def _free(guest: Guest, room: Room, node: Node) -> int:
    needs = {each: guest.needs(each) for each in guest.resources}
    fits = [room.left(node, each) // needed for each, needed in needs.items() if needed]
    here = sum(each.there and each.spec.node_name == node.metadata.name for each in room.guests)
    return max(0, min([int(node.has("pods")) - here, *map(int, fits)]))


def told(guest: Guest, room: Room, copy: str) -> str:
    """Why none of the nodes takes it, in numbers; nothing where the numbers do not say."""
    there = open_to(guest, room.nodes)
    if not there:
        return _kept_away(guest, room.nodes)
    counted = candidates(guest, room.nodes)[:MOST]
    if not counted:
        return _beyond(guest, there, copy)
    return _taken(guest, room, counted, copy)


def _beyond(guest: Guest, there: Sequence[Node], copy: str) -> str:
    """Even empty, none would hold it."""
    lacking = [each for each in guest.resources if all(node.has(each) < guest.needs(each) for node in there)]
    lines = []
    for resource in lacking:
        largest = max(there, key=lambda each: (each.has(resource), each.metadata.name))
        has = shown(resource, largest.has(resource))
        one = "the only node" if len(there) == 1 else f"the largest of {len(there)} nodes"
        lines.append(f"a {copy} needs {shown(resource, guest.needs(resource))}, and {one} that it may run on has {has}")
    return "; ".join(lines)


def _taken(guest: Guest, room: Room, counted: Sequence[Node], copy: str) -> str:
    """They would hold it, if others did not run there."""
    lines = []
    for resource in guest.resources:
        roomiest = max(counted, key=lambda each: (room.left(each, resource), each.metadata.name))
        left, needs = room.left(roomiest, resource), guest.needs(resource)
        if left < needs:
            has, free = shown(resource, roomiest.has(resource)), bare(resource, max(left, Fraction(0)))
            most = "" if len(counted) == 1 else f", the most of {len(counted)} nodes"
            name = roomiest.metadata.name
            lines.append(f"a {copy} needs {shown(resource, needs)}, and {name} has {free} of {has} free{most}")
    return "; ".join(lines)


def _kept_away(guest: Guest, nodes: Sequence[Node]) -> str:
    """By what it asks of a node's labels, or by what nodes ask of it."""
    if not nodes:
        return "the cluster has no node"
    wanted = [_unmet(key, [value], nodes) for key, value in sorted(guest.spec.node_selector.items())]
    for each in expressions(guest):
        values = each.get("values", []) if each.get("operator") == "In" else []
        if each.get("operator") in {"In", "Exists"}:
            wanted.append(_unmet(each["key"], values, nodes))
    found = [each for each in wanted if each]
    return "; ".join(dict.fromkeys(found)) or _tainted(guest, nodes)


def _unmet(key: str, values: Sequence[str], nodes: Sequence[Node]) -> str:
    """Nothing where some node has it: then it is not this alone."""
    there: dict[str, int] = {}
    for node in nodes:
        if key in node.metadata.labels:
            value = node.metadata.labels[key]
            there[value] = there.get(value, 0) + 1
    if (there and not values) or there.keys() & set(values):
        return ""
    said = f"{key}={' or '.join(values)}" if values else key
    if not there:
        return f"it asks for {said}, and none of {len(nodes)} nodes has the label {key}"
    most = sorted(there, key=lambda each: (-there[each], each))
    return f"it asks for {said}, and nodes have {key}={some(most)}"


def _tainted(guest: Guest, nodes: Sequence[Node]) -> str:
    counts: dict[str, int] = {}
    for node in nodes:
        for each in against(guest, node):
            counts[each] = counts.get(each, 0) + 1
    said = [f"{counts[each]} of {len(nodes)} nodes have the taint {each}" for each in sorted(counts)]
    return "; ".join(said)

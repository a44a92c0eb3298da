"""Free capacity of the nodes, and the reason in numbers for which a pod does not fit. Read only when a user asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from pincompute.objects.content import Object
from pincompute.objects.label_selector import expression_matches
from pincompute.planning.diagnosis.capacity import (
    Node,
    PodRequirements,
    eligible_nodes,
    format_amount,
    format_amount_with_unit,
    labels_match,
    lacks_any,
    node_affinity_expressions,
    round_down,
    untolerated_taints,
)
from pincompute.planning.diagnosis.excerpts import excerpt_start, join_first_few

MAX_COUNTED_NODES = 10
"""Limit of nodes on which the pods are counted, the largest first: the caller waits for each of these requests."""


class ClusterCapacity(NamedTuple):
    """Nodes, and the pods of those nodes that were counted."""

    nodes: Sequence[Node] = ()
    pods: Sequence[PodRequirements] = ()

    def free(self, node: Node, resource: str) -> Fraction:
        on_node = (each for each in self.pods if each.is_active and each.spec.node_name == node.metadata.name)
        return node.allocatable(resource) - sum((each.requested(resource) for each in on_node), Fraction(0))


def candidate_nodes(pod: PodRequirements, nodes: Iterable[Node]) -> list[Node]:
    """Eligible nodes that would have room for the pod if they were empty, the largest first."""
    requests = pod.requests
    return _largest_first(node for node in eligible_nodes(pod, nodes) if not lacks_any(node, requests))


def _largest_first(nodes: Iterable[Node]) -> list[Node]:
    def node_size(node: Node) -> tuple[float, float, str]:
        # Fractions are exact, and slow to compare a thousand times.
        return -float(node.allocatable("cpu")), -float(node.allocatable("memory")), node.metadata.name

    return sorted(nodes, key=node_size)


class FittingReplicas(NamedTuple):
    """Number of further replicas that fit, and of nodes that have room for them."""

    replicas: int
    nodes: int
    all_counted: bool
    """False if there are more candidate nodes than were counted."""


def count_fitting_replicas(pod: PodRequirements, capacity: ClusterCapacity) -> FittingReplicas:
    candidates = candidate_nodes(pod, capacity.nodes)
    fitting = [_count_on_node(pod, capacity, node) for node in candidates[:MAX_COUNTED_NODES]]
    return FittingReplicas(sum(fitting), sum(each > 0 for each in fitting), len(candidates) <= MAX_COUNTED_NODES)


def _count_on_node(pod: PodRequirements, capacity: ClusterCapacity, node: Node) -> int:
    requests = {each: pod.requested(each) for each in pod.requested_resources}
    by_resource = [capacity.free(node, each) // amount for each, amount in requests.items() if amount]
    pod_count = sum(each.is_active and each.spec.node_name == node.metadata.name for each in capacity.pods)
    return max(0, min([int(node.allocatable("pods")) - pod_count, *map(int, by_resource)]))


def counted_nodes(pod: PodRequirements, nodes: Iterable[Node]) -> list[Node]:
    """Nodes on which the pods are counted: those that might fit the pod, or else the largest that accept it at all."""
    nodes = list(nodes)
    found = candidate_nodes(pod, nodes) or _largest_first(eligible_nodes(pod, nodes))
    return found[:MAX_COUNTED_NODES]


def largest_request_that_fits(pod: PodRequirements, capacity: ClusterCapacity, container: str) -> dict[str, Fraction]:
    """The most that this container may request of each scarce resource, on the node where that is most of its request.

    Empty if nothing is scarce there, or if nothing is left: then only more nodes help.
    """
    own = next((each for each in pod.spec.containers if each.name == container), None)
    nodes = counted_nodes(pod, capacity.nodes)
    if own is None or not nodes:
        return {}
    requests = {each: amount for each in pod.requested_resources if (amount := pod.requested(each))}

    def share_left(node: Node) -> Fraction:
        return min((capacity.free(node, each) / amount for each, amount in requests.items()), default=Fraction(0))

    best = max(nodes, key=lambda node: (share_left(node), node.metadata.name))
    scarce = [each for each, amount in requests.items() if capacity.free(best, each) < amount]
    # Sidecars have requests of their own.
    fits = {each: capacity.free(best, each) - (requests[each] - own.requested(each)) for each in scarce}
    rounded = {each: round_down(each, amount) for each, amount in fits.items()}
    return {} if any(amount <= 0 for amount in rounded.values()) else rounded


def explain_unschedulable(pod: PodRequirements, capacity: ClusterCapacity, replica: str) -> str:
    """The reason in numbers; empty if the numbers do not show it. `replica` is the word for the pod."""
    eligible = eligible_nodes(pod, capacity.nodes)
    if not eligible:
        return _explain_no_eligible_node(pod, capacity.nodes)
    counted = candidate_nodes(pod, capacity.nodes)[:MAX_COUNTED_NODES]
    if not counted:
        return _explain_too_large(pod, eligible, replica)
    return _explain_no_free_capacity(pod, capacity, counted, replica)


def _explain_too_large(pod: PodRequirements, eligible: Sequence[Node], replica: str) -> str:
    """Compares with the largest node: the pod does not fit even on an empty one."""
    exceeded = [
        each
        for each in pod.requested_resources
        if all(node.allocatable(each) < pod.requested(each) for node in eligible)
    ]
    lines = []
    for resource in exceeded:
        largest = max(eligible, key=lambda node: (node.allocatable(resource), node.metadata.name))
        has = format_amount_with_unit(resource, largest.allocatable(resource))
        which = "the only eligible node" if len(eligible) == 1 else f"the largest of {len(eligible)} eligible nodes"
        lines.append(
            f"a {replica} requests {format_amount_with_unit(resource, pod.requested(resource))}, {which} has {has}"
        )
    return "; ".join(lines)


def _explain_no_free_capacity(
    pod: PodRequirements, capacity: ClusterCapacity, counted: Sequence[Node], replica: str
) -> str:
    """Compares with the node that has most left: the pod would fit if other pods did not run there."""
    lines = []
    for resource in pod.requested_resources:
        roomiest = max(counted, key=lambda node: (capacity.free(node, resource), node.metadata.name))
        free, requested = capacity.free(roomiest, resource), pod.requested(resource)
        if free < requested:
            total = format_amount_with_unit(resource, roomiest.allocatable(resource))
            left = format_amount(resource, max(free, Fraction(0)))
            most = "" if len(counted) == 1 else f", the most of {len(counted)} nodes"
            name = roomiest.metadata.name
            request = format_amount_with_unit(resource, requested)
            lines.append(f"a {replica} requests {request}, {name} has {left} of {total} free{most}")
    return "; ".join(lines)


def _explain_no_eligible_node(pod: PodRequirements, nodes: Sequence[Node]) -> str:
    """The label that no node has, or else the state of the nodes that have the labels."""
    if not nodes:
        return "the cluster has no nodes"
    lines = [_unmatched_label(key, [value], nodes) for key, value in sorted(pod.spec.node_selector.items())]
    lines += (_unmatched_expression(each, nodes) for each in node_affinity_expressions(pod))
    unmatched = [each for each in lines if each]
    return "; ".join(dict.fromkeys(unmatched)) or _explain_refusing_nodes(pod, nodes)


def _label_values(key: str, nodes: Sequence[Node]) -> Counter[str]:
    return Counter(each.metadata.labels[key] for each in nodes if key in each.metadata.labels)


def _unmatched_expression(expression: Object, nodes: Sequence[Node]) -> str:
    """The mismatch of one expression of a node affinity; empty if it holds for some node."""
    key, operator, values = expression["key"], expression.get("operator", ""), expression.get("values", [])
    if operator in {"In", "Exists"}:
        return _unmatched_label(key, values if operator == "In" else [], nodes)
    if any(expression_matches(expression, each.metadata.labels) for each in nodes):
        return ""
    wanted = " ".join([key, {"Gt": ">", "Lt": "<"}.get(operator, operator), *map(str, values)])
    counts = _label_values(key, nodes)
    has = (
        f"nodes have {key}={join_first_few(sorted(counts))}" if counts else f"none of {len(nodes)} nodes has the label"
    )
    return f"it requires {wanted}, and {has}"


def _unmatched_label(key: str, values: Sequence[str], nodes: Sequence[Node]) -> str:
    """The mismatch of one label; empty if some node has it, since then it is not the only reason."""
    counts = _label_values(key, nodes)
    if (counts and not values) or counts.keys() & set(values):
        return ""
    wanted = f"{key}={' or '.join(values)}" if values else key
    if not counts:
        return f"it requires {wanted}, and none of {len(nodes)} nodes has the label {key}"
    most_frequent = sorted(counts, key=lambda value: (-counts[value], value))
    return f"it requires {wanted}, and nodes have {key}={join_first_few(most_frequent)}"


def _refusing_nodes(pod: PodRequirements, nodes: Iterable[Node]) -> list[Node]:
    """The nodes that have the labels, and do not accept the pod for their state or their taints."""
    return [each for each in nodes if labels_match(pod, each) and _node_obstacles(pod, each)]


def _explain_refusing_nodes(pod: PodRequirements, nodes: Sequence[Node]) -> str:
    by_obstacle: dict[str, list[str]] = {}
    refusing = _refusing_nodes(pod, nodes)
    for node in refusing:
        for obstacle in _node_obstacles(pod, node):
            by_obstacle.setdefault(obstacle, []).append(node.metadata.name)
    which = f" of {len(refusing)} with its labels" if pod.selects_nodes and len(refusing) > 1 else ""
    return "; ".join(f"node {join_first_few(names)}{which}: {text}" for text, names in sorted(by_obstacle.items()))


def _node_obstacles(pod: PodRequirements, node: Node) -> list[str]:
    """The states of a node that keep the pod off, in words; Kubernetes sets a taint for each of them, too."""
    states = []
    if node.lost:
        message = f", {excerpt_start(node.lost.message)}" if node.lost.message else ""
        states.append(f"not ready since {node.lost.last_transition_time}{message}")
    if node.spec.unschedulable:
        states.append("cordoned")
    of_states = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "node.kubernetes.io/unschedulable")
    return states + [f"taint {each}" for each in untolerated_taints(pod, node) if not each.startswith(of_states)]


def absent_resource(pod: PodRequirements, nodes: Sequence[Node]) -> str:
    """The first resource that the pod requests and no eligible node has; empty if there is none."""
    eligible = eligible_nodes(pod, nodes)
    for resource in pod.requested_resources if eligible else ():
        if not any(each.allocatable(resource) for each in eligible) and pod.requested(resource):
            return resource
    return ""

"""Resource requirements of pods and capacity of nodes, as the scheduler compares them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from pincompute.api.structs import LenientStruct, Metadata
from pincompute.objects.content import Object
from pincompute.objects.label_selector import expression_matches
from pincompute.objects.quantity import format_bytes, format_cores, parse_quantity
from pincompute.planning.pods.pod import GPU_RESOURCE

_UNIT_NAMES = {GPU_RESOURCE: "gpus"}
_BYTE_RESOURCES = ("memory", "ephemeral-storage")
_SCHEDULING_EFFECTS = ("NoSchedule", "NoExecute")
"""Taint effects that keep a pod off a node; PreferNoSchedule does not."""


class Taint(LenientStruct, frozen=True):
    key: str
    effect: str
    value: str = ""


class _NodeSpec(LenientStruct, frozen=True):
    taints: list[Taint] = []
    unschedulable: bool = False


class NodeCondition(LenientStruct, frozen=True):
    type: str
    status: str
    message: str = ""
    last_transition_time: str = ""


class _NodeStatus(LenientStruct, frozen=True):
    allocatable: dict[str, int | str] = {}
    conditions: list[NodeCondition] = []


class Node(LenientStruct, frozen=True):
    """The fields of a node that decide about scheduling."""

    metadata: Metadata
    spec: _NodeSpec = _NodeSpec()
    status: _NodeStatus = _NodeStatus()

    @property
    def lost(self) -> NodeCondition | None:
        """The condition Ready, unless the node is ready."""
        return next((each for each in self.status.conditions if each.type == "Ready" and each.status != "True"), None)

    def allocatable(self, resource: str) -> Fraction:
        return parse_quantity(self.status.allocatable.get(resource, "0"))


class _Resources(LenientStruct, frozen=True):
    requests: dict[str, int | str] = {}


class _Container(LenientStruct, frozen=True):
    name: str = ""
    resources: _Resources = _Resources()
    restart_policy: str = ""
    """`Always` for an init container that keeps running as a sidecar."""

    def requested(self, resource: str) -> Fraction:
        return parse_quantity(self.resources.requests.get(resource, "0"))


class _ClaimSource(LenientStruct, frozen=True):
    claim_name: str = ""


class _Volume(LenientStruct, frozen=True):
    persistent_volume_claim: _ClaimSource | None = None


class _PodSpec(LenientStruct, frozen=True):
    node_name: str = ""
    containers: list[_Container] = []
    init_containers: list[_Container] = []
    node_selector: dict[str, str] = {}
    affinity: Object = {}
    tolerations: list[Object] = []
    volumes: list[_Volume] = []


class _PodStatus(LenientStruct, frozen=True):
    phase: str = ""


class PodRequirements(LenientStruct, frozen=True):
    """The fields of a pod that decide about scheduling."""

    metadata: Metadata
    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()

    @property
    def selects_nodes(self) -> bool:
        return bool(self.spec.node_selector or _node_affinity_terms(self))

    @property
    def claim_names(self) -> list[str]:
        sources = (each.persistent_volume_claim for each in self.spec.volumes)
        return [each.claim_name for each in sources if each]

    @property
    def is_active(self) -> bool:
        """True while the pod occupies its node."""
        return self.status.phase not in {"Succeeded", "Failed"}

    def requested(self, resource: str) -> Fraction:
        """Effective request: the sum of containers that run together, or a single init container if that is more."""
        sidecars = [each for each in self.spec.init_containers if each.restart_policy == "Always"]
        init_containers = [each for each in self.spec.init_containers if each not in sidecars]
        together = sum((each.requested(resource) for each in (*self.spec.containers, *sidecars)), Fraction(0))
        return max([together, *(each.requested(resource) for each in init_containers)])

    @property
    def requests(self) -> dict[str, Fraction]:
        """Effective requests by resource. Computed once for a comparison with many nodes."""
        return {each: self.requested(each) for each in self.requested_resources}

    @property
    def requested_resources(self) -> list[str]:
        """Names of all requested resources, cpu first."""
        containers = (*self.spec.containers, *self.spec.init_containers)
        names = {name for container in containers for name in container.resources.requests}
        return sorted(names, key=lambda name: (name != "cpu", name))


def eligible_nodes(pod: PodRequirements, nodes: Iterable[Node]) -> list[Node]:
    """Nodes that accept the pod by their labels, taints and cordon; their capacity is not considered."""
    return [
        node
        for node in nodes
        if not node.spec.unschedulable and labels_match(pod, node) and not untolerated_taints(pod, node)
    ]


def untolerated_taints(pod: PodRequirements, node: Node) -> list[str]:
    taints = [each for each in node.spec.taints if each.effect in _SCHEDULING_EFFECTS]
    return [
        _taint_text(taint)
        for taint in taints
        if not any(_tolerates(toleration, taint) for toleration in pod.spec.tolerations)
    ]


def _taint_text(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def _tolerates(toleration: Object, taint: Taint) -> bool:
    if toleration.get("effect") not in {None, "", taint.effect}:
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in {None, "", taint.key}
    return toleration.get("key") == taint.key and toleration.get("value", "") == taint.value


def labels_match(pod: PodRequirements, node: Node) -> bool:
    """True if the node has the labels that the node selector and the node affinity of the pod require."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    terms = _node_affinity_terms(pod)
    return not terms or any(
        all(expression_matches(each, labels) for each in term.get("matchExpressions", ())) for term in terms
    )


def _node_affinity_terms(pod: PodRequirements) -> list[Object]:
    required = pod.spec.affinity.get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {})
    terms: list[Object] = required.get("nodeSelectorTerms", [])
    return terms


def node_affinity_expressions(pod: PodRequirements) -> list[Object]:
    """All expressions of the required node affinity."""
    return [each for term in _node_affinity_terms(pod) for each in term.get("matchExpressions", ())]


def exceeds_node(pod: PodRequirements, node: Node) -> bool:
    """True if the pod would not fit even on an empty node."""
    return lacks_any(node, pod.requests)


def lacks_any(node: Node, requests: Mapping[str, Fraction]) -> bool:
    """True if an empty node has less than one of these amounts."""
    return any(node.allocatable(resource) < amount for resource, amount in requests.items())


def format_amount_with_unit(resource: str, value: Fraction) -> str:
    """The amount with its resource, such as `1.5 cpu`."""
    return f"{format_amount(resource, value)} {_UNIT_NAMES.get(resource, resource)}"


def format_amount(resource: str, value: Fraction) -> str:
    return format_bytes(value) if resource in _BYTE_RESOURCES else format_cores(value)


def round_down(resource: str, value: Fraction) -> Fraction:
    """To what a person would write: whole MiB, tenths of a core, and thousandths below one."""
    if resource in _BYTE_RESOURCES:
        unit = Fraction(2**20)
    elif resource == "cpu":
        unit = Fraction(1, 10 if value >= 1 else 1000)
    else:
        unit = Fraction(1)
    return value // unit * unit

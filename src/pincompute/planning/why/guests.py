"""Pods and nodes as far as one takes room on the other: what it needs, what it has, and whom it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

from pincompute.api.wire import Metadata, Wire
from pincompute.objects.content import Object
from pincompute.objects.quantity import amount, binary, cores
from pincompute.planning.pods.pod import GPU

_PLAIN = {GPU: "gpus"}
_BYTES = ("memory", "ephemeral-storage")
_HARD = ("NoSchedule", "NoExecute")


class Taint(Wire, frozen=True):
    key: str
    effect: str
    value: str = ""


class _NodeSpec(Wire, frozen=True):
    taints: list[Taint] = []
    unschedulable: bool = False


class _NodeStatus(Wire, frozen=True):
    allocatable: dict[str, int | str] = {}


class Node(Wire, frozen=True):
    """What it has, and whom it takes."""

    metadata: Metadata
    spec: _NodeSpec = _NodeSpec()
    status: _NodeStatus = _NodeStatus()

    def has(self, resource: str) -> Fraction:
        return amount(self.status.allocatable.get(resource, "0"))


class _Resources(Wire, frozen=True):
    requests: dict[str, int | str] = {}


class _Container(Wire, frozen=True):
    name: str = ""
    resources: _Resources = _Resources()
    restart_policy: str = ""
    """`Always` of what runs on beside the program."""


class _GuestSpec(Wire, frozen=True):
    node_name: str = ""
    containers: list[_Container] = []
    init_containers: list[_Container] = []
    node_selector: dict[str, str] = {}
    affinity: Object = {}
    tolerations: list[Object] = []


class _GuestStatus(Wire, frozen=True):
    phase: str = ""


class Guest(Wire, frozen=True):
    """A pod, as far as it takes room."""

    metadata: Metadata
    spec: _GuestSpec = _GuestSpec()
    status: _GuestStatus = _GuestStatus()

    @property
    def there(self) -> bool:
        return self.status.phase not in {"Succeeded", "Failed"}

    def needs(self, resource: str) -> Fraction:
        """What runs together; or what runs before it, if that is more."""
        beside = [each for each in self.spec.init_containers if each.restart_policy == "Always"]
        before = [each for each in self.spec.init_containers if each not in beside]
        together = sum((_asks(each, resource) for each in (*self.spec.containers, *beside)), Fraction(0))
        return max([together, *(_asks(each, resource) for each in before)])

    @property
    def resources(self) -> list[str]:
        """All that it asks for, the processors first."""
        said = {
            name for each in (*self.spec.containers, *self.spec.init_containers) for name in each.resources.requests
        }
        return sorted(said, key=lambda each: (each != "cpu", each))


def open_to(guest: Guest, nodes: Iterable[Node]) -> list[Node]:
    """Nodes that take it by their labels and taints."""
    return [
        each for each in nodes if not each.spec.unschedulable and _labelled(guest, each) and not against(guest, each)
    ]


def against(guest: Guest, node: Node) -> list[str]:
    """Taints that it does not tolerate."""
    taints = [each for each in node.spec.taints if each.effect in _HARD]
    return [_spelled(each) for each in taints if not any(_tolerates(one, each) for one in guest.spec.tolerations)]


def _spelled(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def _tolerates(toleration: Object, taint: Taint) -> bool:
    if toleration.get("effect") not in {None, "", taint.effect}:
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in {None, "", taint.key}
    return toleration.get("key") == taint.key and toleration.get("value", "") == taint.value


def _labelled(guest: Guest, node: Node) -> bool:
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in guest.spec.node_selector.items()):
        return False
    terms = _terms(guest)
    return not terms or any(all(_holds(one, labels) for one in term.get("matchExpressions", ())) for term in terms)


def _terms(guest: Guest) -> list[Object]:
    required = guest.spec.affinity.get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {})
    found: list[Object] = required.get("nodeSelectorTerms", [])
    return found


def expressions(guest: Guest) -> list[Object]:
    """What it asks of a node's labels."""
    return [each for term in _terms(guest) for each in term.get("matchExpressions", ())]


def _holds(expression: Object, labels: dict[str, str]) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values", [])
    tests: dict[str, Callable[[], bool]] = {
        "In": lambda: value in values,
        "NotIn": lambda: value not in values,
        "Exists": lambda: value is not None,
        "DoesNotExist": lambda: value is None,
        "Gt": lambda: value is not None and value.isdigit() and int(value) > int(values[0]),
        "Lt": lambda: value is not None and value.isdigit() and int(value) < int(values[0]),
    }
    return tests[expression["operator"]]()


def too_small(guest: Guest, node: Node) -> bool:
    """Also if nothing else ran there."""
    return any(node.has(each) < guest.needs(each) for each in guest.resources)


def _asks(container: _Container, resource: str) -> Fraction:
    return amount(container.resources.requests.get(resource, "0"))


def shown(resource: str, value: Fraction) -> str:
    """For people: `1.5 cpu`."""
    return f"{bare(resource, value)} {_PLAIN.get(resource, resource)}"


def bare(resource: str, value: Fraction) -> str:
    return binary(value) if resource in _BYTES else cores(value)

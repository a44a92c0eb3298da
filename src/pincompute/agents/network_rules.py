"""Translates NetworkPolicies into the nftables rules of one node. Pure.

The rules are one table, which is replaced as a whole, so that there is never a moment without them:

- `forward` sees every packet from or to a pod of the node. It drops packets of addresses that belong to no known pod,
  and jumps to the chain of the sender's policies (`egress_N`) and to that of the receiver's (`ingress_N`).
- Each such chain returns for what its policies allow, and rejects the rest. Pods with the same policies share it. A pod
  that no policy selects has none: everything is allowed.

Replies to an allowed connection are allowed. Connections from the machine itself are allowed, as Kubernetes requires
for the kubelet; they are also those of the ingress and of the API server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address, ip_network
from itertools import product
from typing import Literal, NamedTuple

import msgspec

from pincompute.objects.content import Object
from pincompute.objects.label_selector import selector_matches

TABLE = "inet pincompute_network"
"""The table with all rules, in the network namespace of the node."""
_ENDED = ("Succeeded", "Failed")

Direction = Literal["Ingress", "Egress"]


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = {}
    creation_timestamp: str = ""


class ContainerPort(msgspec.Struct, frozen=True, rename="camel"):
    container_port: int = 0
    name: str = ""
    protocol: str = "TCP"


class Container(msgspec.Struct, frozen=True, rename="camel"):
    ports: list[ContainerPort] = []


class PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""
    host_network: bool = False
    containers: list[Container] = []
    init_containers: list[Container] = []


class PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    pod_ip: str = msgspec.field(name="podIP", default="")


class Pod(msgspec.Struct, frozen=True, rename="camel"):
    metadata: Metadata
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def address(self) -> str:
        """Its own IP address; empty without one. An ended pod's address may be another's already."""
        owns = not self.spec.host_network and self.status.phase not in _ENDED
        return self.status.pod_ip if owns else ""

    def port_numbers(self, name: str, protocol: str) -> list[int]:
        """Numbers of the container ports with this name."""
        containers = (*self.spec.containers, *self.spec.init_containers)
        ports = (port for container in containers for port in container.ports)
        return [port.container_port for port in ports if (port.name, port.protocol) == (name, protocol)]


class Namespace(msgspec.Struct, frozen=True, rename="camel"):
    metadata: Metadata


class PolicySpec(msgspec.Struct, frozen=True, rename="camel"):
    pod_selector: Object = {}
    policy_types: list[str] = []
    ingress: list[Object] = []
    egress: list[Object] = []


class NetworkPolicy(msgspec.Struct, frozen=True, rename="camel"):
    metadata: Metadata
    spec: PolicySpec = PolicySpec()


class NodeNetwork(NamedTuple):
    """The network of the node whose rules are made."""

    node: str
    pod_range: str
    host_address: str
    """Source address of connections from the machine into the node's network."""


def network_rules(
    pods: Iterable[Pod],
    namespaces: Mapping[str, Namespace],
    policies: Iterable[NetworkPolicy],
    network: NodeNetwork,
) -> str:
    """The script for `nft -f` that replaces the rules of a node."""
    # The address of a pod that is being deleted may be that of a newer one already.
    by_age = sorted(pods, key=lambda pod: pod.metadata.creation_timestamp)
    holders = {pod.address: pod for pod in by_age if pod.address}
    with_address = [holders[address] for address in sorted(holders)]
    local = [pod for pod in with_address if pod.spec.node_name == network.node]
    compiler = _Compiler(with_address, namespaces, policies)
    chains: dict[tuple[str, ...], str] = {}
    jumps: dict[Direction, list[str]] = {"Ingress": [], "Egress": []}
    for pod, (direction, entries) in product(local, jumps.items()):
        allowed = compiler.allowed(pod, direction)
        if allowed is not None:
            chain = chains.setdefault((direction, *allowed), f"{direction.lower()}_{len(chains)}")
            entries.append(f"{pod.address} : jump {chain}")
    return _script(network, [pod.address for pod in local], jumps, chains)


class _Compiler:
    """Finds what policies allow each pod. Pods that no policy can tell apart are examined once."""

    def __init__(self, pods: list[Pod], namespaces: Mapping[str, Namespace], policies: Iterable[NetworkPolicy]) -> None:
        self._pods = pods
        self._namespaces = namespaces
        self._policies = sorted(policies, key=lambda policy: (policy.metadata.namespace, policy.metadata.name))
        self._examined: dict[tuple[object, ...], tuple[str, ...] | None] = {}

    def allowed(self, pod: Pod, direction: Direction) -> tuple[str, ...] | None:
        """Conditions of allowed packets; None if no policy selects the pod, so that everything is allowed."""
        metadata = pod.metadata
        containers = (*pod.spec.containers, *pod.spec.init_containers)
        ports = tuple(port for container in containers for port in container.ports if port.name)
        key = (direction, metadata.namespace, frozenset(metadata.labels.items()), ports)
        if key not in self._examined:
            self._examined[key] = self._examine(pod, direction)
        return self._examined[key]

    def _examine(self, pod: Pod, direction: Direction) -> tuple[str, ...] | None:
        selecting = [
            policy
            for policy in self._policies
            if policy.metadata.namespace == pod.metadata.namespace
            and direction in policy.spec.policy_types
            and selector_matches(policy.spec.pod_selector, pod.metadata.labels)
        ]
        if not selecting:
            return None
        if direction == "Ingress":
            rules = ((policy, rule) for policy in selecting for rule in policy.spec.ingress)
            return _unique(each for policy, rule in rules for each in self._ingress_conditions(pod, policy, rule))
        rules = ((policy, rule) for policy in selecting for rule in policy.spec.egress)
        return _unique(each for policy, rule in rules for each in self._egress_conditions(policy, rule))

    def _ingress_conditions(self, pod: Pod, policy: NetworkPolicy, rule: Object) -> Iterator[str]:
        ports = [condition for port in rule.get("ports") or () for condition in _ports_of(pod, port)]
        for peer, port in product(self._peers(policy, rule.get("from"), "saddr"), ports if rule.get("ports") else [""]):
            yield f"{peer} {port}".strip()

    def _egress_conditions(self, policy: NetworkPolicy, rule: Object) -> Iterator[str]:
        entries: list[Object] = rule.get("ports") or []
        named = [port for port in entries if isinstance(port.get("port"), str)]
        numbered = [port for port in entries if port not in named]
        # The number behind a name differs from receiver to receiver.
        for port in named:
            for receiver in self._receivers(policy, rule.get("to")):
                yield from (f"ip daddr {receiver.address} {condition}" for condition in _ports_of(receiver, port))
        if numbered or not named:
            ports = [_port_condition(port, port.get("port")) for port in numbered] or [""]
            for peer, condition in product(self._peers(policy, rule.get("to"), "daddr"), ports):
                yield f"{peer} {condition}".strip()

    def _peers(self, policy: NetworkPolicy, peers: list[Object] | None, side: str) -> list[str]:
        """A condition for each kind of peer: nothing where every address is one."""
        if not peers:
            return [""]
        blocks = [_block_condition(peer["ipBlock"], side) for peer in peers if "ipBlock" in peer]
        selectors = [peer for peer in peers if "ipBlock" not in peer]
        addresses = [pod.address for pod in self._pods if any(self._is_peer(policy, each, pod) for each in selectors)]
        return [*blocks, *([f"ip {side} {_set(addresses)}"] if addresses else [])]

    def _receivers(self, policy: NetworkPolicy, peers: list[Object] | None) -> list[Pod]:
        """Pods that peers of either form stand for."""
        return [pod for pod in self._pods if not peers or any(self._is_peer(policy, each, pod) for each in peers)]

    def _is_peer(self, policy: NetworkPolicy, peer: Object, pod: Pod) -> bool:
        if "ipBlock" in peer:
            return _in_block(peer["ipBlock"], pod.address)
        if (selector := peer.get("namespaceSelector")) is None:
            in_namespace = pod.metadata.namespace == policy.metadata.namespace
        else:
            namespace = self._namespaces.get(pod.metadata.namespace)
            in_namespace = namespace is not None and selector_matches(selector, namespace.metadata.labels)
        return in_namespace and selector_matches(peer.get("podSelector") or {}, pod.metadata.labels)


def _ports_of(receiver: Pod, port: Object) -> Iterator[str]:
    """Conditions of one entry of `ports`, whose name is that of a container port of the receiver."""
    number = port.get("port")
    protocol = port.get("protocol", "TCP")
    numbers = receiver.port_numbers(number, protocol) if isinstance(number, str) else [number]
    return (_port_condition(port, each) for each in numbers)


def _port_condition(port: Object, number: int | None) -> str:
    protocol = port.get("protocol", "TCP").lower()
    if number is None:
        return f"meta l4proto {protocol}"
    last = port.get("endPort")
    return f"{protocol} dport {number}-{last}" if last else f"{protocol} dport {number}"


def _block_condition(block: Object, side: str) -> str:
    block_range = ip_network(block["cidr"], strict=False)
    protocol, family = ("ip", "ipv4") if block_range.version == 4 else ("ip6", "ipv6")
    inside = f"{protocol} {side} {block_range}" if block_range.prefixlen else f"meta nfproto {family}"
    excluded = block.get("except")
    return f"{inside} {protocol} {side} != {_set(excluded)}" if excluded else inside


def _in_block(block: Object, address: str) -> bool:
    def includes(cidr: str) -> bool:
        return ip_address(address) in ip_network(cidr, strict=False)

    return includes(block["cidr"]) and not any(map(includes, block.get("except") or ()))


def _script(
    network: NodeNetwork,
    local: list[str],
    jumps: Mapping[Direction, list[str]],
    chains: Mapping[tuple[str, ...], str],
) -> str:
    pods, host = network.pod_range, network.host_address
    # Adding the table first makes deleting it succeed in every case; nft applies the whole script or nothing.
    return f"""\
add table {TABLE}
delete table {TABLE}
table {TABLE} {{
  set pods {{ type ipv4_addr;{_elements(local)} }}
{"".join(_chain(name, allowed) for (_, *allowed), name in chains.items())}\
  map egress {{ type ipv4_addr : verdict;{_elements(jumps["Egress"])} }}
  map ingress {{ type ipv4_addr : verdict;{_elements(jumps["Ingress"])} }}
  chain prerouting {{
    type filter hook prerouting priority raw; policy accept;
    # A pod sends from its own address only.
    fib saddr . iif oif missing drop
  }}
  chain forward {{
    type filter hook forward priority filter - 10; policy accept;
    ct state established,related accept
    ip saddr {host} accept
    # Pods that are not known yet reach only the machine. The senders of dropped packets try again.
    ip daddr {pods} ip daddr != @pods drop
    ip saddr {pods} ip saddr != @pods ip daddr != {host} drop
    ip saddr vmap @egress
    ip daddr vmap @ingress
  }}
}}
"""


def _chain(name: str, allowed: Iterable[str]) -> str:
    returns = "".join(f"    {condition} return\n" if condition else "    return\n" for condition in allowed)
    # The kernel limits the rate of ICMP errors, but not that of resets.
    rejects = "    meta l4proto tcp reject with tcp reset\n    reject with icmpx type admin-prohibited\n"
    return f"  chain {name} {{\n{returns}{rejects}  }}\n"


def _elements(entries: list[str]) -> str:
    return f" elements = {_set(entries)};" if entries else ""


def _set(elements: Iterable[str]) -> str:
    return f"{{ {', '.join(elements)} }}"


def _unique(conditions: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(conditions))

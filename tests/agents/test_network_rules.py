"""NetworkPolicies as nftables rules: connections between network namespaces end as Kubernetes defines it."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from ipaddress import ip_address, ip_network
from itertools import product
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from pincompute.agents.network_rules import Namespace, NetworkPolicy, NodeNetwork, Pod, network_rules
from pincompute.api.names import PROJECT_LABEL
from pincompute.api.project import Project
from pincompute.objects.content import Object
from pincompute.objects.label_selector import selector_matches
from pincompute.planning.kinds.project import plan
from pincompute.planning.snapshot import Cluster, Native, Snapshot
from pod_network import HOST, RANGE, PodNetwork, pod_network as pod_network

pytestmark = pytest.mark.cluster

WEB, DATABASE, OTHER, NEWBORN = ADDRESSES = ["10.99.0.11", "10.99.0.12", "10.99.0.13", "10.99.0.14"]
PORTS = [8080, 9090]
NETWORK = NodeNetwork("node", RANGE, HOST)
PLACES = {WEB: ("ads", "web"), DATABASE: ("ads", "database"), OTHER: ("shop", "web")}
"""Namespace and label `app` of each known pod."""
OPEN: Object = {}


def _local_pod(address: str, namespace: str, app: str, **changes: Any) -> Pod:
    ports = [{"name": "http", "containerPort": 8080 if app == "web" else 9090}]
    content = {
        "metadata": {"name": app, "namespace": namespace, "labels": {"app": app}},
        "spec": {"nodeName": "node", "containers": [{"ports": ports}]},
        "status": {"podIP": address, "phase": "Running"},
    }
    return msgspec.convert({key: {**value, **changes.get(key, {})} for key, value in content.items()}, Pod)


PODS = [_local_pod(address, *place) for address, place in PLACES.items()]
NAMESPACES = {
    name: msgspec.convert({"metadata": {"name": name, "labels": {"team": name, PROJECT_LABEL: name}}}, Namespace)
    for name in ("ads", "shop")
}


def _policy(namespace: str, spec: Object) -> Object:
    types = [each for each in ("Ingress", "Egress") if each.lower() in spec]
    metadata = {"name": "policy", "namespace": namespace}
    return {"metadata": metadata, "spec": {"podSelector": {}, "policyTypes": types, **spec}}


def _rules(policies: Iterable[Object], pods: Iterable[Pod] = PODS) -> str:
    return network_rules(pods, NAMESPACES, [msgspec.convert(each, NetworkPolicy) for each in policies], NETWORK)


def _opened(network: PodNetwork, *senders: str, receiver: str, port: int = 8080) -> list[str]:
    return [network.result_of(sender, receiver, port) for sender in senders]


def test_without_policies_everything_is_open(pod_network: PodNetwork) -> None:
    pod_network.load(_rules([]))
    pairs = product((WEB, DATABASE, OTHER, HOST), (WEB, DATABASE, OTHER))
    assert {pod_network.result_of(sender, receiver, 8080) for sender, receiver in pairs if sender != receiver} == {
        "open"
    }


def test_project_accepts_connections_of_itself_and_the_machine_only(pod_network: PodNetwork) -> None:
    pod_network.load(_rules(_project_policies("ads")))
    assert _opened(pod_network, WEB, HOST, OTHER, receiver=DATABASE) == ["open", "open", "rejected"]
    assert _opened(pod_network, WEB, DATABASE, receiver=OTHER) == ["open", "open"]


def test_project_accepts_its_callers(pod_network: PodNetwork) -> None:
    pod_network.load(_rules(_project_policies("ads", callers=["shop"])))
    assert _opened(pod_network, OTHER, receiver=DATABASE) == ["open"]


def test_pods_of_projects_do_not_reach_the_metadata_of_cloud_providers(pod_network: PodNetwork) -> None:
    metadata = "169.254.169.254"
    pod_network.host.run("ip", "address", "add", f"{metadata}/32", "dev", "lo")
    with closing(pod_network.host.socket()) as listener:
        listener.bind((metadata, 80))
        listener.listen()
        pod_network.load(_rules([]))
        assert _opened(pod_network, WEB, receiver=metadata, port=80) == ["open"]
        pod_network.load(_rules(_project_policies("ads")))
        assert _opened(pod_network, WEB, OTHER, receiver=metadata, port=80) == ["rejected", "open"]
        assert _opened(pod_network, WEB, receiver=HOST) == ["open"]


def test_unknown_pod_reaches_the_machine_only_and_is_not_reached(pod_network: PodNetwork) -> None:
    pod_network.load(_rules([]))
    assert _opened(pod_network, NEWBORN, WEB, receiver=OTHER) == ["dropped", "open"]
    assert _opened(pod_network, WEB, receiver=NEWBORN) == ["dropped"]
    assert _opened(pod_network, NEWBORN, receiver=HOST) == ["open"]
    assert _opened(pod_network, HOST, receiver=NEWBORN) == ["open"]


def test_address_of_an_ended_pod_belongs_to_nobody(pod_network: PodNetwork) -> None:
    ended = [_local_pod(DATABASE, *PLACES[DATABASE], status={"phase": "Succeeded"})]
    on_host_network = [_local_pod(OTHER, *PLACES[OTHER], spec={"hostNetwork": True})]
    pod_network.load(_rules([], [PODS[0], *ended, *on_host_network]))
    assert _opened(pod_network, WEB, receiver=DATABASE) == ["dropped"]
    assert _opened(pod_network, WEB, receiver=OTHER) == ["dropped"]


def test_address_belongs_to_the_newest_pod(pod_network: PodNetwork) -> None:
    older = _local_pod(DATABASE, "ads", "database", metadata={"creationTimestamp": "2026-11-20T10:00:00Z"})
    newer = _local_pod(DATABASE, "shop", "database", metadata={"creationTimestamp": "2026-11-20T10:00:01Z"})
    pod_network.load(_rules([_policy("ads", {"ingress": []})], [newer, older, PODS[2]]))
    assert _opened(pod_network, OTHER, receiver=DATABASE) == ["open"]


def test_pod_cannot_send_from_the_address_of_another(pod_network: PodNetwork) -> None:
    pod_network.load(_rules(_project_policies("ads")))
    # As a pod with every right in its network namespace.
    pod_network.pods[OTHER].run("ip", "address", "add", f"{WEB}/32", "dev", "eth0")
    with (
        closing(pod_network.pods[DATABASE].socket(socket.SOCK_DGRAM)) as receiver,
        closing(pod_network.pods[OTHER].socket(socket.SOCK_DGRAM)) as forger,
        closing(pod_network.pods[WEB].socket(socket.SOCK_DGRAM)) as real,
    ):
        receiver.bind((DATABASE, 7))
        receiver.settimeout(60)
        forger.bind((WEB, 0))
        forger.sendto(b"forged", (DATABASE, 7))
        real.sendto(b"real", (DATABASE, 7))
        assert receiver.recv(10) == b"real"


def test_rules_are_replaced_as_a_whole(pod_network: PodNetwork) -> None:
    pod_network.load(_rules([_policy("ads", {"ingress": []})]))
    assert _opened(pod_network, WEB, receiver=DATABASE) == ["rejected"]
    pod_network.load(_rules([_policy("ads", {"ingress": [{}]})]))
    assert _opened(pod_network, WEB, receiver=DATABASE) == ["open"]


def test_pods_with_the_same_policies_share_a_chain() -> None:
    many = [_local_pod(f"10.99.0.{20 + number}", "ads", "web") for number in range(200)]
    rules = _rules([_policy("ads", {"ingress": [{"from": [{"podSelector": {}}]}]})], many)
    assert rules.count("chain ingress_") == 1


_labels = st.fixed_dictionaries({"matchLabels": st.fixed_dictionaries({"app": st.sampled_from(["web", "database"])})})
_teams = st.fixed_dictionaries({
    "key": st.just("team"),
    "operator": st.sampled_from(["In", "NotIn"]),
    "values": st.lists(st.sampled_from(["ads", "shop"]), min_size=1, max_size=2),
}).map(lambda expression: {"matchExpressions": [expression]})  # fmt: skip
_selectors = st.just(OPEN) | _labels
_peers = (
    st.fixed_dictionaries({"podSelector": _selectors})
    | st.fixed_dictionaries({"namespaceSelector": st.just(OPEN) | _teams}, optional={"podSelector": _selectors})
    | st.sampled_from([
        {"ipBlock": {"cidr": "10.99.0.0/28", "except": [f"{WEB}/32"]}},
        {"ipBlock": {"cidr": "0.0.0.0/0", "except": [f"{OTHER}/32"]}},
        {"ipBlock": {"cidr": "::/0"}},
    ])
)  # fmt: skip
_ports = st.sampled_from([
    {"port": 8080}, {"port": "http"}, {"port": 8081, "endPort": 9999}, {"protocol": "UDP", "port": 8080},
    {"protocol": "TCP"}, {"port": "unknown"},
])  # fmt: skip


def _rule_lists(peers_field: str) -> st.SearchStrategy[list[Object]]:
    fields = {peers_field: st.lists(_peers, max_size=2), "ports": st.lists(_ports, max_size=2)}
    return st.lists(st.fixed_dictionaries({}, optional=fields), max_size=2)


_specs = st.fixed_dictionaries(
    {"podSelector": _selectors}, optional={"ingress": _rule_lists("from"), "egress": _rule_lists("to")}
)
_policies = st.builds(_policy, st.sampled_from(["ads", "shop"]), _specs)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(policies=st.lists(_policies, max_size=3))
def test_connections_end_as_kubernetes_defines(pod_network: PodNetwork, policies: list[Object]) -> None:
    pod_network.load(_rules(policies))
    for sender, receiver, port in product(PODS, PODS, PORTS):
        if sender is not receiver:
            expected = "open" if _is_allowed(policies, sender, receiver, port) else "rejected"
            actual = pod_network.result_of(sender.address, receiver.address, port)
            assert actual == expected, (sender.metadata, receiver.metadata, port, str(policies))


def _is_allowed(policies: list[Object], sender: Pod, receiver: Pod, port: int) -> bool:
    """Whether a connection is allowed, written down from the documentation of NetworkPolicies."""
    sides = (("Ingress", "from", receiver, sender), ("Egress", "to", sender, receiver))
    for direction, field, subject, peer in sides:
        selecting = [
            each
            for each in policies
            if each["metadata"]["namespace"] == subject.metadata.namespace
            and direction in each["spec"]["policyTypes"]
            and selector_matches(each["spec"]["podSelector"], subject.metadata.labels)
        ]
        rules = [(each, rule) for each in selecting for rule in each["spec"][direction.lower()]]
        allowed = (
            (not rule.get(field) or any(_is_peer(each, option, peer) for option in rule[field]))
            and (not rule.get("ports") or any(_is_port(option, receiver, port) for option in rule["ports"]))
            for each, rule in rules
        )
        if selecting and not any(allowed):
            return False
    return True


def _is_peer(policy: Object, option: Object, peer: Pod) -> bool:
    if block := option.get("ipBlock"):
        address = ip_address(peer.address)
        inside = address in ip_network(block["cidr"])
        return inside and not any(address in ip_network(each) for each in block.get("except", ()))
    namespace = peer.metadata.namespace
    if "namespaceSelector" not in option:
        return namespace == policy["metadata"]["namespace"] and selector_matches(
            option["podSelector"], peer.metadata.labels
        )
    in_namespace = selector_matches(option["namespaceSelector"], NAMESPACES[namespace].metadata.labels)
    return in_namespace and selector_matches(option.get("podSelector", {}), peer.metadata.labels)


def _is_port(option: Object, receiver: Pod, port: int) -> bool:
    if option.get("protocol", "TCP") != "TCP":
        return False
    match option.get("port"):
        case None:
            return True
        case str(name):
            return port in receiver.port_numbers(name, "TCP")
        case number:
            return number <= port <= option.get("endPort", number)


def _project_policies(name: str, **spec: Any) -> list[Object]:
    """The policies that the operator makes for a project."""
    project = msgspec.convert({"metadata": {"name": name, "uid": "1"}, "spec": {"owner": "team", **spec}}, Project)
    namespace = {
        "kind": "Namespace",
        "metadata": {"name": name, "ownerReferences": [{"uid": "1", "controller": True}]},
    }
    natives = (msgspec.convert(namespace, Native),)
    cluster = Cluster(name="test", domain="localhost", port=80)
    snapshot = Snapshot(owner=project, natives=natives, pods=(), cluster=cluster, now=datetime.now(UTC))
    return [each for each in plan(snapshot).wanted if each["kind"] == "NetworkPolicy"]

"""Members of serversets: which pods are members, their names, and their JSON, as Finagle and Aurora write it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from typing import NamedTuple

import msgspec

from pincompute.api.names import SERVERSET_LABEL, WORKLOAD_LABEL
from pincompute.api.serverset import ServersetKey
from pincompute.api.structs import LenientStruct, Metadata
from pincompute.planning.observed_pods import PodStatus

MEMBER_PREFIX = "member_"
MAX_MEMBER_BYTES = 4096
"""Larger entries of a serverset are ignored: a member has less than 1 KiB."""
_POD_INDEX = "apps.kubernetes.io/pod-index"
_ALIVE = "ALIVE"


class ContainerPort(LenientStruct, frozen=True):
    container_port: int
    name: str = ""


class Container(LenientStruct, frozen=True):
    name: str
    ports: tuple[ContainerPort, ...] = ()


class MemberPodSpec(LenientStruct, frozen=True):
    node_name: str = ""
    containers: tuple[Container, ...] = ()


class MemberPod(LenientStruct, frozen=True):
    """The fields of a pod that decide on its membership."""

    metadata: Metadata
    spec: MemberPodSpec = MemberPodSpec()
    status: PodStatus = PodStatus()

    @property
    def serverset(self) -> ServersetKey:
        return ServersetKey(self.metadata.namespace, self.metadata.labels.get(WORKLOAD_LABEL, ""))

    @property
    def is_ready(self) -> bool:
        """Ready, and not about to end: a pod with a deletion timestamp receives SIGTERM soon."""
        ready = any(each.type == "Ready" and each.status == "True" for each in self.status.conditions)
        return ready and self.status.phase == "Running" and not self.metadata.deletion_timestamp


class Endpoint(LenientStruct, frozen=True):
    host: str
    port: int


class ServiceInstance(LenientStruct, frozen=True):
    """The JSON of a member: the fields of Finagle's ServiceInstance."""

    service_endpoint: Endpoint
    additional_endpoints: dict[str, Endpoint] = msgspec.field(default_factory=dict)
    status: str = _ALIVE
    shard: int | None = None
    metadata: dict[str, str] = msgspec.field(default_factory=dict)


class Member(NamedTuple):
    """A member that a pod should be, with the serverset and the name of its node in ZooKeeper."""

    serverset: ServersetKey
    name: str
    data: bytes


def member_of(pod: MemberPod) -> Member | None:
    """The membership of a pod; None while it should have none."""
    labels = pod.metadata.labels
    if labels.get(SERVERSET_LABEL) != "true" or not pod.is_ready or not pod.serverset.workload:
        return None
    ports = _ports(pod)
    if not ports or not pod.status.pod_ip:
        return None
    endpoints = [(each.name, Endpoint(host=pod.status.pod_ip, port=each.container_port)) for each in ports]
    index = labels.get(_POD_INDEX, "")
    instance = ServiceInstance(
        service_endpoint=endpoints[0][1],
        additional_endpoints={name: endpoint for name, endpoint in endpoints if name},
        shard=int(index) if index.isdigit() else None,
        metadata={"pod": pod.metadata.name, "node": pod.spec.node_name},
    )
    # Readers in other languages expect the status, also where it has its default.
    data = msgspec.json.encode({**msgspec.to_builtins(instance), "status": _ALIVE})
    return Member(pod.serverset, member_name(pod.metadata.uid), data)


def _ports(pod: MemberPod) -> tuple[ContainerPort, ...]:
    """Ports of the main container, the first of which is the main port."""
    main = pod.metadata.labels.get(WORKLOAD_LABEL, "")
    containers = pod.spec.containers
    chosen = next((each for each in containers if each.name == main), containers[0] if containers else None)
    return chosen.ports if chosen else ()


def member_name(uid: str) -> str:
    """Name of a pod's node: the same for every registrar and session, so that a pod can never be there twice.

    Twitter's Java client accepts only digits after the prefix, of which 18 fit into its long.
    """
    number = int.from_bytes(hashlib.sha256(uid.encode()).digest()[:8]) % 10**18
    return f"{MEMBER_PREFIX}{number:018d}"


def parse_member(data: bytes) -> ServiceInstance | None:
    """The member of an entry; None for what is none. Any client that has the password may have written it."""
    if len(data) > MAX_MEMBER_BYTES:
        return None
    try:
        instance = msgspec.json.decode(data, type=ServiceInstance)
        ip_address(instance.service_endpoint.host)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    port = instance.service_endpoint.port
    return instance if instance.status == _ALIVE and 0 < port < 65536 else None


def address_lines(members: Iterable[ServiceInstance]) -> str:
    """Content of a file of endpoints: one ADDRESS:PORT a line, each once, in the order of the shards."""
    ordered = sorted(members, key=lambda each: (each.shard or 0, *_address(each)))
    return "".join(f"{line}\n" for line in dict.fromkeys(map(_line, ordered)))


def _address(member: ServiceInstance) -> Iterator[str | int]:
    yield member.service_endpoint.host
    yield member.service_endpoint.port


def _line(member: ServiceInstance) -> str:
    host, port = _address(member)
    return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"

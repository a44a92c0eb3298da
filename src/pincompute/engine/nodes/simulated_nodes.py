"""Simulated nodes: Node objects with heartbeats from kwok. Their pods become running at once, without containers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from pathlib import Path
from urllib.parse import urlencode

import yaml

from pincompute.api.names import ENGINE, SIMULATED_LABEL
from pincompute.engine.build import pinned_version
from pincompute.engine.config_files import write_if_changed
from pincompute.engine.kubeconfigs import write_kubeconfig
from pincompute.engine.nodes.simulated_spec import SimulatedNodes
from pincompute.engine.parts import HttpProbe, Part
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.resource import LEASES, NODES, Object

USER = "pincompute-kwok"

_RESTARTS = Path(__file__).parent / "restarts.yaml"
"""Stage in addition to kwok's own, for in-place restarts of containers."""

_ZONE = "topology.kubernetes.io/zone"
_MAX_PODS = "110"
_LEASE_DURATION_S = 40
NodesByName = dict[str, Object]
# Enough concurrent requests to keep the API server busy; more would only wait in its queue.
_MAX_CONCURRENT_REQUESTS = 50


def issue_certificates(platform: Platform) -> None:
    platform.authority.issue(USER, hosts=("127.0.0.1", "localhost"))


def write_files(platform: Platform) -> None:
    write_kubeconfig(platform, USER)
    options = {
        "podPlayStageParallelism": _MAX_CONCURRENT_REQUESTS,
        "nodePlayStageParallelism": _MAX_CONCURRENT_REQUESTS,
        "nodeLeaseParallelism": _MAX_CONCURRENT_REQUESTS,
    }
    configuration = {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokConfiguration", "options": options}
    write_if_changed(_configuration(platform), yaml.safe_dump(configuration))


def kwok_stages(platform: Platform) -> list[list[Part]]:
    return [[], [kwok_part(platform)]] if platform.simulated.count else []


def kwok_part(platform: Platform) -> Part:
    authority = platform.authority
    port = platform.ports["kwok"]
    stages = sorted(platform.programs.stages.glob("*.yaml"))
    return Part(
        "kwok",
        (
            str(platform.programs.kwok),
            f"--kubeconfig={platform.kubeconfig_of(USER)}",
            "--manage-all-nodes=false",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            f"--node-lease-duration-seconds={_LEASE_DURATION_S}",
            f"--cidr={platform.simulated_pod_range}",
            # Address from which the API server requests logs of simulated pods; kwok answers that there are none.
            "--node-ip=127.0.0.1",
            f"--node-port={port}",
            f"--server-address=127.0.0.1:{port}",
            f"--tls-cert-file={authority.certificate(USER)}",
            f"--tls-private-key-file={authority.key(USER)}",
            *(f"--config={file}" for file in (_configuration(platform), *stages, _RESTARTS)),
        ),
        HttpProbe(f"https://127.0.0.1:{port}/healthz"),
        version=pinned_version("sigs.k8s.io/kwok"),
        before_restart=_release_command(platform),
    )


def _release_command(platform: Platform) -> tuple[str, ...]:
    """Does what `release_leases` does, for the supervisor."""
    path = f"{LEASES.path('kube-node-lease')}?{urlencode(_other_leases(platform))}"
    kubectl = (str(platform.programs.kubernetes), "kubectl", f"--kubeconfig={platform.home.kubeconfig}")
    return (*kubectl, "delete", "--raw", path)


def _configuration(platform: Platform) -> Path:
    return platform.home.configs / "kwok.yaml"


async def release_leases(client: Client, platform: Platform) -> None:
    """Delete the node leases of a stopped kwok: until they expire, a new one would not manage pods of their nodes."""
    await client.raw("DELETE", LEASES.path("kube-node-lease"), query=_other_leases(platform))


def _other_leases(platform: Platform) -> dict[str, str]:
    return {"fieldSelector": f"metadata.name!={platform.node_name}"}


def has_unwanted_nodes(seen: NodesByName, platform: Platform) -> bool:
    """Whether `reconcile_nodes` is going to delete nodes. kwok must be stopped before.

    kwok 0.8.0 loses track of a node that is deleted and created again: a worker that renews the former node's lease
    meanwhile queues the name a second time. The queue (pkg/utils/heap) indexes entries by name, so the first entry can
    never be removed, and blocks all later ones: no lease of any node is renewed, and failed ones are not retried.
    """
    return bool(seen.keys() - _wanted_nodes(platform).keys())


async def list_nodes(client: Client, platform: Platform) -> NodesByName:
    """The nodes of the cluster without the real one."""
    listing = await client.list(NODES)
    there = {each["metadata"]["name"]: each for each in listing.items}
    if platform.real:
        there.pop(platform.node_name, None)
    return there


def _wanted_nodes(platform: Platform) -> NodesByName:
    nodes = (simulated_node(number, platform.simulated) for number in range(platform.simulated.count))
    return {each["metadata"]["name"]: each for each in nodes}


async def reconcile_nodes(client: Client, platform: Platform, seen: NodesByName) -> None:
    """Create, update and delete Node objects so that the cluster has exactly the wanted simulated nodes."""
    nodes = _wanted_nodes(platform)
    await _run_limited(client.delete(NODES, name) for name in seen.keys() - nodes.keys())
    await _run_limited(client.create(NODES, nodes[name], manager=ENGINE) for name in nodes.keys() - seen.keys())
    changed = [name for name in nodes.keys() & seen.keys() if _has_changed(seen[name], nodes[name])]
    await _run_limited(_update_node(client, nodes[name]) for name in changed)


def simulated_node(number: int, wanted: SimulatedNodes) -> Object:
    """The Node object with this number; zones are assigned round-robin."""
    name = f"simulated-{number + 1:04}"
    size = {"cpu": wanted.cpu, "memory": wanted.memory, "pods": _MAX_PODS}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {
                SIMULATED_LABEL: "true",
                _ZONE: f"zone-{number % wanted.zones + 1}",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
            },
        },
        "spec": {"taints": [{"key": SIMULATED_LABEL, "value": "true", "effect": "NoSchedule"}]},
        "status": {"capacity": size, "allocatable": size},
    }


def _has_changed(seen: Object, wanted: Object) -> bool:
    return (
        seen["metadata"]["labels"].get(_ZONE) != wanted["metadata"]["labels"][_ZONE]
        or seen["status"]["capacity"] != wanted["status"]["capacity"]
    )


async def _update_node(client: Client, wanted: Object) -> None:
    name, labels = wanted["metadata"]["name"], wanted["metadata"]["labels"]
    await client.patch(NODES, name, "", {"metadata": {"labels": labels}}, style="merge", manager=ENGINE)
    size = {"status": wanted["status"]}
    await client.patch(NODES, name, "", size, style="merge", subresource="status", manager=ENGINE)


async def _run_limited(requests: Iterable[Awaitable[object]]) -> None:
    gate = asyncio.Semaphore(_MAX_CONCURRENT_REQUESTS)

    async def send(request: Awaitable[object]) -> None:
        async with gate:
            await request

    await asyncio.gather(*(send(request) for request in requests))

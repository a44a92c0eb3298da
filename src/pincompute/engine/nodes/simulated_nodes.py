"""Simulated nodes: objects that kwok keeps alive; what is scheduled to them runs at once, and runs nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from pathlib import Path

import yaml

from pincompute.api.names import ENGINE, SIMULATED
from pincompute.engine.build import pinned
from pincompute.engine.files import write_changed
from pincompute.engine.kubeconfigs import write_kubeconfig
from pincompute.engine.nodes.shape import Simulated
from pincompute.engine.parts import Part, Web
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.resource import LEASES, NODES, Object

USER = "pincompute-kwok"

_RESTARTS = Path(__file__).parent / "restarts.yaml"
"""Beside kwok's own stages, by which what runs goes on as it is."""

_ZONE = "topology.kubernetes.io/zone"
_MOST_PODS = "110"
_LEASE_SECONDS = 40
# So many requests at once keep the API server busy; more would only wait in its queue.
_AT_ONCE = 50


def certify(platform: Platform) -> None:
    platform.authority.issue(USER, hosts=("127.0.0.1", "localhost"))


def prepare(platform: Platform) -> None:
    write_kubeconfig(platform, USER)
    options = {
        "podPlayStageParallelism": _AT_ONCE,
        "nodePlayStageParallelism": _AT_ONCE,
        "nodeLeaseParallelism": _AT_ONCE,
    }
    configuration = {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokConfiguration", "options": options}
    write_changed(_configuration(platform), yaml.safe_dump(configuration))


def stages(platform: Platform) -> list[list[Part]]:
    return [[], [kwok(platform)]] if platform.simulated.count else []


def kwok(platform: Platform) -> Part:
    authority = platform.authority
    port = platform.ports["kwok"]
    stages = sorted(platform.programs.stages.glob("*.yaml"))
    return Part(
        "kwok",
        (
            str(platform.programs.kwok),
            f"--kubeconfig={platform.config(USER)}",
            "--manage-all-nodes=false",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            f"--node-lease-duration-seconds={_LEASE_SECONDS}",
            f"--cidr={platform.simulated_pod_range}",
            # By this address the API server asks for a simulated pod's logs, and is told that there are none.
            "--node-ip=127.0.0.1",
            f"--node-port={port}",
            f"--server-address=127.0.0.1:{port}",
            f"--tls-cert-file={authority.certificate(USER)}",
            f"--tls-private-key-file={authority.key(USER)}",
            *(f"--config={file}" for file in (_configuration(platform), *stages, _RESTARTS)),
        ),
        Web(f"https://127.0.0.1:{port}/healthz"),
        version=pinned("sigs.k8s.io/kwok"),
    )


def _configuration(platform: Platform) -> Path:
    return platform.home.configs / "kwok.yaml"


async def release(client: Client, platform: Platform) -> None:
    """A kwok that has ended holds its nodes for a while, and what comes to them in that time would never run."""
    others = {"fieldSelector": f"metadata.name!={platform.node_name}"}
    await client.raw("DELETE", LEASES.path("kube-node-lease"), query=others)


async def adjust(client: Client, platform: Platform) -> None:
    """Make the cluster have just the simulated nodes that are wanted: add, change and remove."""
    wanted = platform.simulated
    listing = await client.list(NODES)
    there = {each["metadata"]["name"]: each for each in listing.items}
    if platform.real:
        there.pop(platform.node_name, None)
    nodes = {each["metadata"]["name"]: each for each in (node(number, wanted) for number in range(wanted.count))}
    await _together(client.delete(NODES, name) for name in there.keys() - nodes.keys())
    await _together(client.create(NODES, nodes[name], manager=ENGINE) for name in nodes.keys() - there.keys())
    changed = [name for name in nodes.keys() & there.keys() if _differs(there[name], nodes[name])]
    await _together(_change(client, nodes[name]) for name in changed)


def node(number: int, wanted: Simulated) -> Object:
    """The node of that number; zones take turns."""
    name = f"simulated-{number + 1:04}"
    size = {"cpu": wanted.cpu, "memory": wanted.memory, "pods": _MOST_PODS}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {
                SIMULATED: "true",
                _ZONE: f"zone-{number % wanted.zones + 1}",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
            },
        },
        "spec": {"taints": [{"key": SIMULATED, "value": "true", "effect": "NoSchedule"}]},
        "status": {"capacity": size, "allocatable": size},
    }


def _differs(seen: Object, wanted: Object) -> bool:
    return (
        seen["metadata"]["labels"].get(_ZONE) != wanted["metadata"]["labels"][_ZONE]
        or seen["status"]["capacity"] != wanted["status"]["capacity"]
    )


async def _change(client: Client, wanted: Object) -> None:
    name, labels = wanted["metadata"]["name"], wanted["metadata"]["labels"]
    await client.patch(NODES, name, "", {"metadata": {"labels": labels}}, style="merge", manager=ENGINE)
    size = {"status": wanted["status"]}
    await client.patch(NODES, name, "", size, style="merge", subresource="status", manager=ENGINE)


async def _together(requests: Iterable[Awaitable[object]]) -> None:
    gate = asyncio.Semaphore(_AT_ONCE)

    async def send(request: Awaitable[object]) -> None:
        async with gate:
            await request

    await asyncio.gather(*(send(request) for request in requests))

"""The real node: one a platform, in a network namespace and control group of its own."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from string import Template

import yaml

from pincompute.api.names import ENGINE
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import NODE_IMPOSSIBLE
from pincompute.engine.kubeconfigs import write_kubeconfig
from pincompute.engine.nodes import cgroups, containers, dns, image, kernel, kubelet, leftovers, machine, mounts, proxy
from pincompute.engine.parts import Part
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load
from pincompute.kube.resource import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ENDPOINT_SLICES, NAMESPACES, SERVICES, Object

PROGRAMS = machine.PROGRAMS
"""What Debian brings for it."""

_MANIFEST = Path(__file__).parents[1] / "manifests" / "real_node.yaml"
_LONGEST = 64
_RESOURCES = {each.kind: each for each in (NAMESPACES, SERVICES, ENDPOINT_SLICES, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)}


def obstacles() -> tuple[Problem, ...]:
    """Everything that keeps this machine from running one; nothing where it can."""
    return machine.obstacles(machine.look())


def prepare(platform: Platform) -> None:
    """Everything that the parts find when they start. What runs already is not disturbed."""
    _check_length(platform)
    if not cgroups.exists(platform.namespace):
        # Nothing can be running: what lies about was left by a machine that stopped.
        clean(platform)
    cgroups.make(platform.namespace)
    kernel.remember(_settings(platform))
    _certify(platform)
    containers.write(platform, machine.look())
    kubelet.write(platform)
    proxy.write(platform)
    dns.write(platform)


def parts(platform: Platform) -> list[list[Part]]:
    """In stages: those of one stage start together, when those before are ready."""
    return [
        [containers.part(platform)],
        [kubelet.part(platform), proxy.part(platform), dns.part(platform)],
    ]


def furnish(platform: Platform) -> None:
    """Once containerd and the API server answer: the image that every pod needs, and the names of the cluster."""
    containers.import_image(platform, image.PAUSE, platform.programs.pause)
    asyncio.run(_apply(platform))


def objects(platform: Platform) -> list[Object]:
    """What the cluster must hold for the node's parts."""
    text = Template(_MANIFEST.read_text())
    filled = text.substitute(dns_address=platform.dns_address, node_address=platform.node_address)
    return list(yaml.safe_load_all(filled))


def clean(platform: Platform) -> None:
    """Once the parts have ended, or been killed: nothing that they made outside their own folders remains.

    It can be called at any time, again and again: what it finds, it ends.
    """
    cgroups.remove(platform.namespace)
    leftovers.remove(platform)
    mounts.release(platform.home.root)
    shutil.rmtree(containers.state(platform), ignore_errors=True)
    shutil.rmtree(containers.networks(platform), ignore_errors=True)
    kernel.put_back(_settings(platform))


async def _apply(platform: Platform) -> None:
    async with Client(load(platform.home.kubeconfig), agent="pin") as client:
        for item in objects(platform):
            await client.apply(item, _RESOURCES[item["kind"]], manager=ENGINE)


def _check_length(platform: Platform) -> None:
    """The kernel takes no socket's path that is longer, and neither containerd nor the kubelet says so plainly."""
    folder = str(platform.home.root)
    if len(folder) > _LONGEST:
        raise Refused(
            Problem(
                NODE_IMPOSSIBLE,
                f"the platform's folder has a path of {len(folder)} characters, and {_LONGEST} are the most",
                Where(file=folder),
                next="PIN_STATE=/var/lib/pincompute pin up",
            )
        )


def _settings(platform: Platform) -> Path:
    return platform.home.data / "kernel.json"


def _certify(platform: Platform) -> None:
    issue = platform.authority.issue
    issue("kubelet", kubelet.user(platform), ("system:nodes",), (platform.node_name, platform.node_address))
    issue("kube-proxy", proxy.USER)
    issue("dns", dns.USER)
    for name in ("kubelet", "kube-proxy", "dns"):
        write_kubeconfig(platform, name)

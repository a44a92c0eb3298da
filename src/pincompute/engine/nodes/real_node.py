"""The real node of a platform, in its own network namespace and control group."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from pincompute.api.names import ENGINE
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import NODE_IMPOSSIBLE
from pincompute.engine import debug_credentials
from pincompute.engine.kubeconfigs import write_kubeconfig
from pincompute.engine.manifest_files import fill_manifest
from pincompute.engine.nodes import (
    cgroups,
    containerd,
    debug_agent,
    dns,
    kernel_settings,
    kube_proxy,
    kubelet,
    leftovers,
    machine,
    mounts,
    network_policies,
    program_image,
)
from pincompute.engine.parts import Part
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load_kubeconfig
from pincompute.kube.resource import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ENDPOINT_SLICES, NAMESPACES, SERVICES, Object

PROGRAMS = machine.PROGRAMS
"""Programs from Debian packages."""

_MAX_PATH_LENGTH = 64
_RESOURCES = {each.kind: each for each in (NAMESPACES, SERVICES, ENDPOINT_SLICES, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)}


def obstacles() -> tuple[Problem, ...]:
    """Reasons why this machine cannot run a real node; empty if it can."""
    return machine.obstacles(machine.inspect_machine())


def prepare_node(platform: Platform) -> None:
    """Create everything that the parts need before their start. A running node is not interrupted."""
    _require_short_path(platform)
    if not cgroups.exists(platform.network_namespace):
        # Without the control group nothing is running, so all traces are leftovers of a reboot.
        clean(platform)
    cgroups.create(platform.network_namespace)
    kernel_settings.save_settings(_settings(platform))
    _issue_certificates(platform)
    containerd.write(platform, machine.inspect_machine())
    kubelet.write(platform)
    kube_proxy.write(platform)
    dns.write(platform)


def real_node_stages(platform: Platform) -> list[list[Part]]:
    """Parts of the node: containerd first, then network policies and name resolution, and then pods."""
    return [
        [containerd.containerd_part(platform)],
        [network_policies.network_part(platform)],
        [
            kubelet.kubelet_part(platform),
            kube_proxy.kube_proxy_part(platform),
            dns.dns_part(platform),
            # Kubernetes alone has no desk that could open a session.
            *([] if platform.bare else [debug_agent.debug_part(platform)]),
        ],
    ]


def provision_node(platform: Platform) -> None:
    """Import the pause image and apply the node's objects; needs containerd and the API server."""
    containerd.import_image(platform, program_image.PAUSE, platform.programs.pause)
    asyncio.run(_apply(platform))


def real_node_objects(platform: Platform) -> list[Object]:
    """Objects that the parts of the node need in the cluster."""
    return fill_manifest("real_node", dns_address=platform.dns_address, node_address=platform.node_address)


def clean(platform: Platform) -> None:
    """Remove everything that ended or killed parts have created outside their folders.

    Idempotent; kills processes that are still running.
    """
    cgroups.kill_and_remove(platform.network_namespace)
    leftovers.remove_leftovers(platform)
    mounts.unmount_all(platform.home.root)
    shutil.rmtree(containerd.containerd_state(platform), ignore_errors=True)
    shutil.rmtree(containerd.pod_address_folder(platform), ignore_errors=True)
    kernel_settings.restore_settings(_settings(platform))


async def _apply(platform: Platform) -> None:
    async with Client(load_kubeconfig(platform.home.kubeconfig), agent="pin") as client:
        for item in real_node_objects(platform):
            await client.apply(item, _RESOURCES[item["kind"]], manager=ENGINE)


def _require_short_path(platform: Platform) -> None:
    """Reject long paths, which would exceed the kernel's limit for Unix sockets.

    containerd and the kubelet report that limit only with unspecific errors.
    """
    folder = str(platform.home.root)
    if len(folder) > _MAX_PATH_LENGTH:
        raise Refused(
            Problem(
                NODE_IMPOSSIBLE,
                f"the path of the platform's folder has {len(folder)} characters; the limit is {_MAX_PATH_LENGTH}",
                Where(file=folder),
                next="PIN_STATE=/var/lib/pincompute pin up",
            )
        )


def _settings(platform: Platform) -> Path:
    return platform.home.data / "kernel.json"


def _issue_certificates(platform: Platform) -> None:
    issue = platform.authority.issue
    issue("kubelet", kubelet.kubelet_user(platform), ("system:nodes",), (platform.node_name, platform.node_address))
    issue("kube-proxy", kube_proxy.USER)
    issue("dns", dns.USER)
    issue("network", network_policies.USER)
    debug_credentials.issue_debug_credentials(platform)
    for name in ("kubelet", "kube-proxy", "dns", "network"):
        write_kubeconfig(platform, name)

"""Parts that pods call: a process of the platform, and the Service by which pods reach it."""

from __future__ import annotations

import sys

from pincompute import __version__
from pincompute.api.names import ENGINE
from pincompute.engine.identity import issue_part_identity
from pincompute.engine.kubeconfigs import write_kubeconfig
from pincompute.engine.manifest_files import fill_manifest
from pincompute.engine.own_services import CODE_VARIABLE, code_digest
from pincompute.engine.parts import HttpProbe, Part
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.resource import ENDPOINT_SLICES, SERVICES

SYSTEM_GROUPS = ("pincompute:system",)
_RESOURCES = {each.kind: each for each in (SERVICES, ENDPOINT_SLICES)}


def prepare_store(platform: Platform, user: str) -> None:
    """Issue the certificate of a store, and write its kubeconfig."""
    platform.authority.issue(user, groups=SYSTEM_GROUPS, hosts=(platform.address,))
    write_kubeconfig(platform, user)


def store_part(platform: Platform, name: str, user: str, *options: object) -> Part:
    """A store with two listeners: one for the desk, which has a certificate of the platform, and one for pods."""
    authority, address = platform.authority, f"{platform.address}:{platform.ports[name]}"
    arguments = (
        "agent", name,
        "--kubeconfig", platform.kubeconfig_of(user),
        "--listen", address,
        "--certificate", authority.certificate(user),
        "--trust", authority.bundle,
        "--listen-to-pods", f"{platform.address}:{platform.ports[_pod_port(name)]}",
        "--identity", issue_part_identity(platform, name),
        *options,
    )  # fmt: skip
    command = (sys.executable, "-m", "pincompute", *map(str, arguments))
    probe = HttpProbe(f"https://{address}/healthz", client_certificate=user)
    return Part(name, command, probe, {CODE_VARIABLE: code_digest()}, version=__version__)


async def apply_pod_services(client: Client, platform: Platform, *names: str) -> None:
    """Create the Services by which pods reach the named parts."""
    for name in names:
        port = platform.ports[_pod_port(name)]
        for object_ in fill_manifest("part_service", name=name, address=platform.address, port=port):
            await client.apply(object_, _RESOURCES[object_["kind"]], manager=ENGINE)


def _pod_port(name: str) -> str:
    return f"{name}-pods"

"""Log services: the shipper sends container logs from the node to the log store, where they outlive their pods."""

from __future__ import annotations

import sys

from pincompute import __version__
from pincompute.api.names import ENGINE, LOG_SHIPPER, LOG_STORE
from pincompute.engine.identity import issue_part_identity
from pincompute.engine.kubeconfigs import write_kubeconfig
from pincompute.engine.manifest_files import fill_manifest
from pincompute.engine.nodes import kubelet
from pincompute.engine.own_services import CODE_VARIABLE, code_digest
from pincompute.engine.parts import HttpProbe, NoProbe, Part
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.resource import ENDPOINT_SLICES, SERVICES

_GROUP = ("pincompute:system",)
_NAME = "log-store"
_RESOURCES = {each.kind: each for each in (SERVICES, ENDPOINT_SLICES)}


def issue_certificates(platform: Platform) -> None:
    platform.authority.issue(LOG_STORE, groups=_GROUP, hosts=(platform.address,))
    platform.authority.issue(LOG_SHIPPER, groups=_GROUP)


def write_files(platform: Platform) -> None:
    write_kubeconfig(platform, LOG_STORE)


async def apply_log_store_service(client: Client, platform: Platform) -> None:
    """Create the Service by which pods reach the log store."""
    port = platform.ports["log-store-pods"]
    for object_ in fill_manifest("part_service", name=_NAME, address=platform.address, port=port):
        await client.apply(object_, _RESOURCES[object_["kind"]], manager=ENGINE)


def log_stages(platform: Platform) -> list[list[Part]]:
    return [[], [_store(platform), _shipper(platform)]] if platform.real and not platform.bare else []


def _store(platform: Platform) -> Part:
    authority = platform.authority
    arguments = (
        "agent", "log-store",
        "--kubeconfig", platform.kubeconfig_of(LOG_STORE),
        "--listen", platform.log_store_url.removeprefix("https://"),
        "--folder", platform.home.data / "logs",
        "--certificate", authority.certificate(LOG_STORE),
        "--trust", authority.bundle,
        "--listen-to-pods", f"{platform.address}:{platform.ports['log-store-pods']}",
        "--identity", issue_part_identity(platform, _NAME),
    )  # fmt: skip
    command = (sys.executable, "-m", "pincompute", *map(str, arguments))
    probe = HttpProbe(f"{platform.log_store_url}/healthz", client_certificate=LOG_STORE)
    return Part("log-store", command, probe, {CODE_VARIABLE: code_digest()}, version=__version__)


def _shipper(platform: Platform) -> Part:
    """The log shipper imports the standard library only, so it needs a third of the memory of the other services."""
    authority = platform.authority
    credentials = (authority.bundle, authority.certificate(LOG_SHIPPER), authority.key(LOG_SHIPPER))
    arguments = (kubelet.pod_log_folder(platform), platform.log_store_url, *credentials)
    command = (sys.executable, "-m", "pincompute.agents.logs.node", *map(str, arguments))
    return Part(
        "log-shipper", command, NoProbe(), {CODE_VARIABLE: code_digest()}, grace_period_s=25.0, version=__version__
    )

"""The config store: a process beside the desk, which publishes to it, and which pods read by their identity."""

from __future__ import annotations

import sys

from pincompute import __version__
from pincompute.api.names import CONFIG_STORE, ENGINE
from pincompute.engine.identity import issue_part_identity
from pincompute.engine.kubeconfigs import write_kubeconfig
from pincompute.engine.manifest_files import fill_manifest
from pincompute.engine.own_services import CODE_VARIABLE, code_digest
from pincompute.engine.parts import HttpProbe, Part
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.resource import ENDPOINT_SLICES, SERVICES

_NAME = "config-store"
_RESOURCES = {each.kind: each for each in (SERVICES, ENDPOINT_SLICES)}


def prepare_config_store(platform: Platform) -> None:
    platform.authority.issue(CONFIG_STORE, groups=("pincompute:system",), hosts=(platform.address,))
    write_kubeconfig(platform, CONFIG_STORE)


async def apply_config_store_service(client: Client, platform: Platform) -> None:
    """Create the Service by which pods reach the config store."""
    port = platform.ports["config-store-pods"]
    for object_ in fill_manifest("config_store", address=platform.address, port=port):
        await client.apply(object_, _RESOURCES[object_["kind"]], manager=ENGINE)


def config_store_stages(platform: Platform) -> list[list[Part]]:
    return [[], [_store(platform)]] if platform.real and not platform.bare else []


def _store(platform: Platform) -> Part:
    authority = platform.authority
    arguments = (
        "agent", "config-store",
        "--kubeconfig", platform.kubeconfig_of(CONFIG_STORE),
        "--listen", platform.config_store_url.removeprefix("https://"),
        "--folder", platform.home.data / "config",
        "--certificate", authority.certificate(CONFIG_STORE),
        "--trust", authority.bundle,
        "--listen-to-pods", f"{platform.address}:{platform.ports['config-store-pods']}",
        "--identity", issue_part_identity(platform, _NAME),
    )  # fmt: skip
    command = (sys.executable, "-m", "pincompute", *map(str, arguments))
    probe = HttpProbe(f"{platform.config_store_url}/healthz", client_certificate=CONFIG_STORE)
    return Part(_NAME, command, probe, {CODE_VARIABLE: code_digest()}, version=__version__)

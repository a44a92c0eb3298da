"""What containers print is shipped from the node, and kept in a store, where it outlives their pods."""

from __future__ import annotations

import sys
from string import Template

import yaml

from pincompute import __version__
from pincompute.api.names import ENGINE, LOG_SHIPPER, LOG_STORE
from pincompute.engine.bootstrap import MANIFESTS
from pincompute.engine.identity import vouch
from pincompute.engine.kubeconfigs import write_kubeconfig
from pincompute.engine.nodes import kubelet
from pincompute.engine.own import code
from pincompute.engine.parts import Alive, Part, Web
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.resource import ENDPOINT_SLICES, SERVICES

_GROUP = ("pincompute:system",)
_NAME = "log-store"
_RESOURCES = {each.kind: each for each in (SERVICES, ENDPOINT_SLICES)}


def certify(platform: Platform) -> None:
    platform.authority.issue(LOG_STORE, groups=_GROUP, hosts=(platform.address,))
    platform.authority.issue(LOG_SHIPPER, groups=_GROUP)


def prepare(platform: Platform) -> None:
    write_kubeconfig(platform, LOG_STORE)


async def furnish(client: Client, platform: Platform) -> None:
    """The name by which pods find it."""
    port = platform.ports["log-store-pods"]
    text = Template((MANIFESTS / "log_store.yaml").read_text()).substitute(address=platform.address, port=port)
    for each in yaml.safe_load_all(text):
        await client.apply(each, _RESOURCES[each["kind"]], manager=ENGINE)


def stages(platform: Platform) -> list[list[Part]]:
    return [[], [_store(platform), _shipper(platform)]] if platform.real and not platform.bare else []


def _store(platform: Platform) -> Part:
    authority = platform.authority
    words = (
        "agent", "log-store",
        "--kubeconfig", platform.config(LOG_STORE),
        "--listen", platform.log_store.removeprefix("https://"),
        "--folder", platform.home.data / "logs",
        "--certificate", authority.certificate(LOG_STORE),
        "--trust", authority.bundle,
        "--listen-to-pods", f"{platform.address}:{platform.ports['log-store-pods']}",
        "--identity", vouch(platform, _NAME),
    )  # fmt: skip
    command = (sys.executable, "-m", "pincompute", *map(str, words))
    ready = Web(f"{platform.log_store}/healthz", client=LOG_STORE)
    return Part("log-store", command, ready, {"PINCOMPUTE_CODE": code()}, version=__version__)


def _shipper(platform: Platform) -> Part:
    """Beside the standard library it needs nothing, and so takes a third of the memory."""
    authority = platform.authority
    papers = (authority.bundle, authority.certificate(LOG_SHIPPER), authority.key(LOG_SHIPPER))
    words = (kubelet.logs(platform), platform.log_store, *papers)
    command = (sys.executable, "-m", "pincompute.agents.logs.node", *map(str, words))
    return Part("log-shipper", command, Alive(), {"PINCOMPUTE_CODE": code()}, ending=25.0, version=__version__)

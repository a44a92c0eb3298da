"""Log services: the shipper sends container logs from the node to the log store, where they outlive their pods."""

from __future__ import annotations

import sys

from pincompute import __version__
from pincompute.api.names import LOG_SHIPPER, LOG_STORE
from pincompute.engine.nodes import kubelet
from pincompute.engine.own_services import CODE_VARIABLE, code_digest
from pincompute.engine.parts import NoProbe, Part
from pincompute.engine.platform import Platform
from pincompute.engine.pod_services import SYSTEM_GROUPS, prepare_store, store_part

NAME = "log-store"


def prepare_log_services(platform: Platform) -> None:
    platform.authority.issue(LOG_SHIPPER, groups=SYSTEM_GROUPS)
    prepare_store(platform, LOG_STORE)


def log_stages(platform: Platform) -> list[list[Part]]:
    if not platform.real or platform.bare:
        return []
    store = store_part(platform, NAME, LOG_STORE, "--folder", platform.home.data / "logs")
    return [[], [store, _shipper(platform)]]


def _shipper(platform: Platform) -> Part:
    """The log shipper imports the standard library only, so it needs a third of the memory of the other services."""
    authority = platform.authority
    credentials = (authority.bundle, authority.certificate(LOG_SHIPPER), authority.key(LOG_SHIPPER))
    arguments = (kubelet.pod_log_folder(platform), platform.log_store_url, *credentials)
    command = (sys.executable, "-m", "pincompute.agents.logs.node", *map(str, arguments))
    return Part(
        "log-shipper", command, NoProbe(), {CODE_VARIABLE: code_digest()}, grace_period_s=25.0, version=__version__
    )

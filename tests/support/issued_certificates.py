"""A platform's certificates without its processes."""

from __future__ import annotations

from pathlib import Path

from manual_clock import ManualClock
from pincompute.base.certificate_authority import Authority
from pincompute.engine import config_store, control_plane, log_services, own_services, secret_services
from pincompute.engine.home import Home
from pincompute.engine.nodes import simulated_nodes
from pincompute.engine.platform import Platform, Programs
from pincompute.engine.ports import choose_ports

ISSUERS = (control_plane, simulated_nodes, own_services)


def issued_platform(folder: Path, clock: ManualClock) -> Platform:
    """The platform after another `pin up` has issued its certificates."""
    home = Home("t", folder / "t")
    platform = Platform(home, Programs(folder), Authority(home.certificates, clock), choose_ports({}, None))
    platform.authority.establish()
    for issuer in ISSUERS:
        issuer.issue_certificates(platform)
    log_services.prepare_log_services(platform)
    secret_services.prepare_secret_store(platform)
    config_store.prepare_config_store(platform)
    return platform

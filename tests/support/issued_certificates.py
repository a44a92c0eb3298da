"""A platform's certificates without its processes, and the clock by which they are issued."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from pincompute.base.certificate_authority import Authority
from pincompute.engine import control_plane, log_services, own_services
from pincompute.engine.home import Home
from pincompute.engine.nodes import simulated_nodes
from pincompute.engine.platform import Platform, Programs
from pincompute.engine.ports import choose_ports

ISSUERS = (control_plane, simulated_nodes, own_services, log_services)


class ManualClock:
    """A clock that tests set."""

    at = datetime(2026, 1, 31, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()

    async def sleep(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


def issued_platform(folder: Path, clock: ManualClock) -> Platform:
    """The platform after another `pin up` has issued its certificates."""
    home = Home("t", folder / "t")
    platform = Platform(home, Programs(folder), Authority(home.certificates, clock), choose_ports({}, None))
    platform.authority.establish()
    for issuer in ISSUERS:
        issuer.issue_certificates(platform)
    return platform

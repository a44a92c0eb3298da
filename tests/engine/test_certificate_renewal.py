"""`pin up` renews the certificates of every authority of a platform, and notes that the parts must restart."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from pincompute.base.certificate_authority import LIFETIME, Authority
from pincompute.engine import control_plane, identity, log_services, own_services
from pincompute.engine.home import Home
from pincompute.engine.images import registry
from pincompute.engine.nodes import simulated_nodes
from pincompute.engine.platform import Platform, Programs
from pincompute.engine.ports import choose_ports

ISSUERS = (control_plane, simulated_nodes, own_services, log_services)
AUTHORITIES: dict[str, Callable[[Platform], Authority]] = {
    "main": lambda platform: platform.authority,
    "etcd": control_plane.etcd_authority,
    "identity": identity.identity_authority,
    "web": own_services.web_authority,
    "registry": registry.registry_authority,
}


class ManualClock:
    """A clock that tests set."""

    at = datetime(2026, 1, 31, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()

    async def sleep(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def issued(folder: Path, clock: ManualClock) -> Platform:
    """The platform after another `pin up` has issued its certificates."""
    home = Home("t", folder / "t")
    platform = Platform(home, Programs(folder), Authority(home.certificates, clock), choose_ports({}, None))
    platform.authority.establish()
    for issuer in ISSUERS:
        issuer.issue_certificates(platform)
    return platform


def certificates(platform: Platform) -> dict[Path, x509.Certificate]:
    """Every certificate except those of authorities."""
    files = [each for each in platform.home.certificates.rglob("*.crt") if each.name != "ca.crt"]
    return {each: x509.load_pem_x509_certificate(each.read_bytes()) for each in files}


def test_every_certificate_is_renewed_in_the_last_third_of_its_life(tmp_path: Path, clock: ManualClock) -> None:
    before = certificates(issued(tmp_path, clock))
    clock.at += LIFETIME / 2
    platform = issued(tmp_path, clock)
    assert certificates(platform) == before
    assert (platform.authority.replaced, control_plane.certificates_expiry(platform)) == (False, None)

    clock.at += LIFETIME / 4
    first = min(each.not_valid_after_utc for each in before.values())
    assert control_plane.certificates_expiry(platform) == first
    platform = issued(tmp_path, clock)
    after = certificates(platform)
    assert after.keys() == before.keys()
    assert {each.parent.name for each in after} == {"certificates", "etcd", "identity"}
    assert all(each.not_valid_after_utc > clock.at + LIFETIME * 2 / 3 for each in after.values())
    assert (platform.authority.replaced, control_plane.certificates_expiry(platform)) == (True, None)


@pytest.mark.parametrize("name", AUTHORITIES)
def test_renewal_by_any_authority_restarts_the_parts(name: str, tmp_path: Path, clock: ManualClock) -> None:
    platform = issued(tmp_path, clock)
    authority = AUTHORITIES[name](platform)
    authority.establish()
    authority.issue("other")
    platform = issued(tmp_path, clock)
    clock.at += LIFETIME * 3 / 4
    authority = AUTHORITIES[name](platform)
    assert not platform.authority.replaced
    assert authority.issue("other")
    assert platform.authority.replaced

"""`pin up` renews the certificates of every authority of a platform, and notes that the parts must restart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509

from issued_certificates import issued_platform
from manual_clock import ManualClock
from pincompute.base.certificate_authority import LIFETIME, Authority
from pincompute.engine import control_plane, identity, own_services
from pincompute.engine.images import registry
from pincompute.engine.platform import Platform

AUTHORITIES: dict[str, Callable[[Platform], Authority]] = {
    "main": lambda platform: platform.authority,
    "etcd": control_plane.etcd_authority,
    "identity": identity.identity_authority,
    "web": own_services.web_authority,
    "registry": registry.registry_authority,
}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def certificates(platform: Platform) -> dict[Path, x509.Certificate]:
    """Every certificate except those of authorities."""
    files = [each for each in platform.home.certificates.rglob("*.crt") if each.name != "ca.crt"]
    return {each: x509.load_pem_x509_certificate(each.read_bytes()) for each in files}


def test_every_certificate_is_renewed_in_the_last_third_of_its_life(tmp_path: Path, clock: ManualClock) -> None:
    before = certificates(issued_platform(tmp_path, clock))
    clock.at += LIFETIME / 2
    platform = issued_platform(tmp_path, clock)
    assert certificates(platform) == before
    assert (platform.authority.replaced, control_plane.certificates_expiry(platform)) == (False, None)

    clock.at += LIFETIME / 4
    first = min(each.not_valid_after_utc for each in before.values())
    assert control_plane.certificates_expiry(platform) == first
    platform = issued_platform(tmp_path, clock)
    after = certificates(platform)
    assert after.keys() == before.keys()
    assert {each.parent.name for each in after} == {"certificates", "etcd", "identity"}
    assert all(each.not_valid_after_utc > clock.at + LIFETIME * 2 / 3 for each in after.values())
    assert (platform.authority.replaced, control_plane.certificates_expiry(platform)) == (True, None)


@pytest.mark.parametrize("name", AUTHORITIES)
def test_renewal_by_any_authority_restarts_the_parts(name: str, tmp_path: Path, clock: ManualClock) -> None:
    platform = issued_platform(tmp_path, clock)
    authority = AUTHORITIES[name](platform)
    authority.establish()
    authority.issue("other")
    platform = issued_platform(tmp_path, clock)
    clock.at += LIFETIME * 3 / 4
    authority = AUTHORITIES[name](platform)
    assert not platform.authority.replaced
    assert authority.issue("other")
    assert platform.authority.replaced

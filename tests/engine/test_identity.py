"""Root CA of the trust domain, identities of parts, and mutual TLS with them."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import pytest
from cryptography import x509

from pincompute.agents.identity.bundle import client_context, own_id, peer_id, server_context
from pincompute.api.names import SIGNER
from pincompute.base.certificate_authority import Authority
from pincompute.engine import identity
from pincompute.engine.home import Home
from pincompute.engine.platform import Platform, Programs


@pytest.fixture
def platform(tmp_path: Path) -> Platform:
    home = Home("test", tmp_path / "test")
    platform = Platform(home, Programs(home.root / "none"), Authority(home.certificates), {})
    platform.authority.establish()
    identity.issue_signer_certificate(platform)
    return platform


def test_identity_root_differs_from_api_server_ca(platform: Platform) -> None:
    own = identity.identity_authority(platform)
    signer = x509.load_pem_x509_certificate(own.certificate(SIGNER).read_bytes())
    signer.verify_directly_issued_by(x509.load_pem_x509_certificate(own.bundle.read_bytes()))
    assert own.bundle.read_bytes() != platform.authority.bundle.read_bytes()
    assert stat.S_IMODE(own.key(SIGNER).stat().st_mode) == 0o600


def test_valid_certificates_are_not_reissued(platform: Platform) -> None:
    own = identity.identity_authority(platform)
    before = (own.bundle.read_bytes(), own.certificate(SIGNER).read_bytes())
    identity.issue_signer_certificate(platform)
    assert (own.bundle.read_bytes(), own.certificate(SIGNER).read_bytes()) == before


async def test_part_identity_works_for_mutual_tls(platform: Platform) -> None:
    folder = identity.issue_part_identity(platform, "log-store")
    expected = f"spiffe://{platform.trust_domain}/pincompute-system/log-store"
    assert str(own_id(folder)) == expected
    seen: list[bytes] = []

    async def record_peer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
        writer.close()

    server = await asyncio.start_server(record_peer, "127.0.0.1", 0, ssl=server_context(folder))
    async with server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client_context(folder))
        of_server = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        assert await reader.read() == b""
        writer.close()
    assert [str(peer_id(each, platform.trust_domain)) for each in (*seen, of_server)] == [expected, expected]

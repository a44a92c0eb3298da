"""A platform's root, what it vouches for, and a pod that speaks to a part of the platform by it."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import pytest
from cryptography import x509

from pincompute.agents.identity.bundle import client_context, own_id, peer_id, server_context
from pincompute.api.names import SIGNER
from pincompute.base.certificates import Authority
from pincompute.engine import identity
from pincompute.engine.home import Home
from pincompute.engine.platform import Platform, Programs


@pytest.fixture
def platform(tmp_path: Path) -> Platform:
    home = Home("test", tmp_path / "test")
    platform = Platform(home, Programs(home.root / "none"), Authority(home.certificates), {})
    platform.authority.establish()
    identity.certify(platform)
    return platform


def test_the_root_is_not_the_one_that_the_api_server_believes(platform: Platform) -> None:
    own = identity.authority(platform)
    signer = x509.load_pem_x509_certificate(own.certificate(SIGNER).read_bytes())
    signer.verify_directly_issued_by(x509.load_pem_x509_certificate(own.bundle.read_bytes()))
    assert own.bundle.read_bytes() != platform.authority.bundle.read_bytes()
    assert stat.S_IMODE(own.key(SIGNER).stat().st_mode) == 0o600


def test_what_is_well_stays_as_it_is(platform: Platform) -> None:
    own = identity.authority(platform)
    before = (own.bundle.read_bytes(), own.certificate(SIGNER).read_bytes())
    identity.certify(platform)
    assert (own.bundle.read_bytes(), own.certificate(SIGNER).read_bytes()) == before


async def test_a_part_that_pods_speak_to_shows_who_it_is(platform: Platform) -> None:
    folder = identity.vouch(platform, "log-store")
    said = f"spiffe://{platform.trust_domain}/pincompute-system/log-store"
    assert str(own_id(folder)) == said
    seen: list[bytes] = []

    async def meet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
        writer.close()

    server = await asyncio.start_server(meet, "127.0.0.1", 0, ssl=server_context(folder))
    async with server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client_context(folder))
        of_server = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        assert await reader.read() == b""
        writer.close()
    assert [str(peer_id(each, platform.trust_domain)) for each in (*seen, of_server)] == [said, said]

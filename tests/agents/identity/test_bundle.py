"""Mutual TLS between two pods: rejected certificates, and rotation of files."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509

from certificate_factory import HOUR, NOW, TRUST_DOMAIN, IssuedCertificate, issue_authority, issue_svid, key_usage
from pincompute.agents.identity.bundle import client_context, own_id, peer_id, server_context
from pincompute.base.problem import Refused

ROOT = issue_authority()
INTERMEDIATE = issue_authority(ROOT, name="the signer")
OTHER_ROOT = issue_authority()
API = f"spiffe://{TRUST_DOMAIN}/me/api"
CRITICAL = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.3.6.1.4.1.99999.1"), b"\x05\x00")


def handshake(client: ssl.SSLContext, server: ssl.SSLContext) -> tuple[bytes, bytes]:
    """Does a handshake in memory and returns the certificates that client and server received."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    client_side = client.wrap_bio(down, up, server_side=False)
    server_side = server.wrap_bio(up, down, server_side=True)
    pending = [client_side, server_side]
    for _ in range(6):
        pending = [each for each in pending if not _is_done(each)]
    assert not pending
    # A client learns with its first read whether the server accepted its certificate.
    server_side.write(b"x")
    client_side.read(1)
    return _certificate(client_side), _certificate(server_side)


def _is_done(side: ssl.SSLObject) -> bool:
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


def _certificate(side: ssl.SSLObject) -> bytes:
    found = side.getpeercert(binary_form=True)
    assert found is not None
    return found


def rotate(folder: Path, write: Callable[[Path], object]) -> None:
    """Replaces the files as the kubelet does: by a new folder, and then by replacing one symlink."""
    fresh = folder / f"..{len(list(folder.iterdir()))}"
    write(fresh)
    link = folder / "..new"
    link.symlink_to(fresh.name)
    link.rename(folder / "..data")
    for name in ("identity.pem", "trust.pem"):
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")


def test_both_sides_identify_each_other(tmp_path: Path) -> None:
    web = issue_svid(INTERMEDIATE).write_bundle(tmp_path / "web", ROOT)
    api = issue_svid(INTERMEDIATE, API).write_bundle(tmp_path / "api", ROOT)
    received_by_web, received_by_api = handshake(client_context(web), server_context(api))
    assert str(peer_id(received_by_web, TRUST_DOMAIN)) == API
    assert peer_id(received_by_api, TRUST_DOMAIN) == own_id(web)


REFUSED = {
    "other root": issue_svid(OTHER_ROOT),
    "signed by a leaf": issue_svid(issue_svid(INTERMEDIATE)),
    "signed by a certificate without key_cert_sign": issue_svid(
        issue_authority(ROOT, name="weak", says=key_usage("digital_signature"))
    ),
    "expired": issue_svid(INTERMEDIATE, begin=NOW - 2 * HOUR),
    "not yet valid": issue_svid(INTERMEDIATE, begin=NOW + timedelta(days=1)),
    "unknown critical extension": issue_svid(INTERMEDIATE, more=[(CRITICAL, True)]),
    "missing intermediate": issue_svid(INTERMEDIATE)._replace(chain=()),
}


@pytest.mark.parametrize("bad", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("server", [False, True], ids=["of a client", "of a server"])
def test_rejects_invalid_certificate_chain(tmp_path: Path, bad: IssuedCertificate, server: bool) -> None:
    good = issue_svid(INTERMEDIATE, API).write_bundle(tmp_path / "good", ROOT)
    wrong = bad.write_bundle(tmp_path / "bad", ROOT)
    client, server_side = (good, wrong) if server else (wrong, good)
    with pytest.raises(ssl.SSLError):
        handshake(client_context(client), server_context(server_side))


def test_rejects_client_without_certificate(tmp_path: Path) -> None:
    api = issue_svid(INTERMEDIATE, API).write_bundle(tmp_path / "api", ROOT)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.load_verify_locations(tmp_path / "api" / "trust.pem")
    with pytest.raises(ssl.SSLError):
        handshake(client, server_context(api))


def test_rotation_applies_to_next_handshake(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("web", "api")]
    for folder, name in zip(folders, ("web", "api"), strict=True):
        folder.mkdir()
        rotate(
            folder,
            lambda to, name=name: issue_svid(INTERMEDIATE, f"spiffe://{TRUST_DOMAIN}/me/{name}").write_bundle(to, ROOT),
        )
    server = server_context(folders[1])
    seen = set()
    for number in range(20):
        # First the server's files change, then the client's.
        for folder in reversed(folders):
            rotate(
                folder,
                lambda to, n=number: issue_svid(INTERMEDIATE, f"spiffe://{TRUST_DOMAIN}/me/n{n}").write_bundle(
                    to, ROOT
                ),
            )
            of_server, _ = handshake(client_context(folders[0]), server)
            seen.add(str(peer_id(of_server, TRUST_DOMAIN)).rpartition("/")[2])
    assert seen == {f"n{number}" for number in range(20)}


def test_removed_root_is_not_trusted(tmp_path: Path) -> None:
    api = issue_svid(INTERMEDIATE, API).write_bundle(tmp_path / "api", ROOT, OTHER_ROOT)
    other = issue_svid(OTHER_ROOT).write_bundle(tmp_path / "web", ROOT, OTHER_ROOT)
    server = server_context(api)
    handshake(client_context(other), server)
    issue_svid(INTERMEDIATE, API).write_bundle(api, ROOT)
    with pytest.raises(ssl.SSLError):
        handshake(client_context(other), server)


def test_server_keeps_previous_files_while_missing(tmp_path: Path) -> None:
    api = issue_svid(INTERMEDIATE, API).write_bundle(tmp_path / "api", ROOT)
    web = issue_svid(INTERMEDIATE).write_bundle(tmp_path / "web", ROOT)
    server = server_context(api)
    (api / "trust.pem").unlink()
    handshake(client_context(web), server)


def test_error_names_folder_without_files(tmp_path: Path) -> None:
    for ask in (client_context, server_context, own_id):
        with pytest.raises(Refused, match=str(tmp_path)):
            ask(tmp_path)

"""Two programs that show each other who they are: what a handshake refuses, and what it does when files change."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509

from authorities import DOMAIN, HOUR, NOW, Made, authority, svid, usage
from pincompute.agents.identity.bundle import client_context, own_id, peer_id, server_context
from pincompute.base.problem import Refused

ROOT = authority()
BETWEEN = authority(ROOT, name="the signer")
ELSEWHERE = authority()
API = f"spiffe://{DOMAIN}/me/api"
CRITICAL = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.3.6.1.4.1.99999.1"), b"\x05\x00")


def handshake(client: ssl.SSLContext, server: ssl.SSLContext) -> tuple[bytes, bytes]:
    """The certificate that each side sees of the other; no socket is needed for it."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(down, up, server_side=False)
    answering = server.wrap_bio(up, down, server_side=True)
    waiting = [asking, answering]
    for _ in range(6):
        waiting = [each for each in waiting if not _done(each)]
    assert not waiting
    # What a server thinks of the client, a client learns when it reads.
    answering.write(b"x")
    asking.read(1)
    return _certificate(asking), _certificate(answering)


def _done(side: ssl.SSLObject) -> bool:
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
    """As the kubelet does: a new folder beside the old one, and then one link that changes."""
    fresh = folder / f"..{len(list(folder.iterdir()))}"
    write(fresh)
    link = folder / "..new"
    link.symlink_to(fresh.name)
    link.rename(folder / "..data")
    for name in ("identity.pem", "trust.pem"):
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")


def test_both_sides_learn_who_the_other_is(tmp_path: Path) -> None:
    web = svid(BETWEEN).write(tmp_path / "web", ROOT)
    api = svid(BETWEEN, API).write(tmp_path / "api", ROOT)
    seen_of_api, seen_of_web = handshake(client_context(web), server_context(api))
    assert str(peer_id(seen_of_api, DOMAIN)) == API
    assert peer_id(seen_of_web, DOMAIN) == own_id(web)


REFUSED = {
    "of nobody's": svid(ELSEWHERE),
    "signed by a leaf": svid(svid(BETWEEN)),
    "signed by one that may not sign": svid(authority(ROOT, name="weak", says=usage("digital_signature"))),
    "over": svid(BETWEEN, begin=NOW - 2 * HOUR),
    "not yet": svid(BETWEEN, begin=NOW + timedelta(minutes=30)),
    "with a demand that nobody knows": svid(BETWEEN, more=[(CRITICAL, True)]),
    "without what signed its signer": svid(BETWEEN)._replace(chain=()),
}


@pytest.mark.parametrize("bad", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("server", [False, True], ids=["of a client", "of a server"])
def test_a_certificate_that_leads_to_no_root_is_refused(tmp_path: Path, bad: Made, server: bool) -> None:
    good = svid(BETWEEN, API).write(tmp_path / "good", ROOT)
    wrong = bad.write(tmp_path / "bad", ROOT)
    client, answering = (good, wrong) if server else (wrong, good)
    with pytest.raises(ssl.SSLError):
        handshake(client_context(client), server_context(answering))


def test_a_client_without_a_certificate_is_refused(tmp_path: Path) -> None:
    api = svid(BETWEEN, API).write(tmp_path / "api", ROOT)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.load_verify_locations(tmp_path / "api" / "trust.pem")
    with pytest.raises(ssl.SSLError):
        handshake(client, server_context(api))


def test_a_rotation_drops_no_handshake_and_is_taken_up_by_the_next(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("web", "api")]
    for folder, name in zip(folders, ("web", "api"), strict=True):
        folder.mkdir()
        rotate(folder, lambda to, name=name: svid(BETWEEN, f"spiffe://{DOMAIN}/me/{name}").write(to, ROOT))
    server = server_context(folders[1])
    seen = set()
    for number in range(20):
        # First the server, then the client, each while the other still has what it had.
        for folder in reversed(folders):
            rotate(folder, lambda to, n=number: svid(BETWEEN, f"spiffe://{DOMAIN}/me/n{n}").write(to, ROOT))
            of_server, _ = handshake(client_context(folders[0]), server)
            seen.add(str(peer_id(of_server, DOMAIN)).rpartition("/")[2])
    assert seen == {f"n{number}" for number in range(20)}


def test_a_root_that_is_taken_away_is_trusted_no_more(tmp_path: Path) -> None:
    api = svid(BETWEEN, API).write(tmp_path / "api", ROOT, ELSEWHERE)
    stranger = svid(ELSEWHERE).write(tmp_path / "web", ROOT, ELSEWHERE)
    server = server_context(api)
    handshake(client_context(stranger), server)
    svid(BETWEEN, API).write(api, ROOT)
    with pytest.raises(ssl.SSLError):
        handshake(client_context(stranger), server)


def test_a_server_goes_on_while_its_files_are_away(tmp_path: Path) -> None:
    api = svid(BETWEEN, API).write(tmp_path / "api", ROOT)
    web = svid(BETWEEN).write(tmp_path / "web", ROOT)
    server = server_context(api)
    (api / "trust.pem").unlink()
    handshake(client_context(web), server)


def test_without_files_it_says_which_folder(tmp_path: Path) -> None:
    for ask in (client_context, server_context, own_id):
        with pytest.raises(Refused, match=str(tmp_path)):
            ask(tmp_path)

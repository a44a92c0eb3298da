"""The authority vouches for names and hosts, renews in time, and keeps its keys to itself."""

from __future__ import annotations

import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from pincompute.base.certificates import LIFE, SLACK, Authority


class Calendar:
    """A clock that is turned by hand."""

    def __init__(self) -> None:
        self.at = datetime.now(UTC)

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()

    async def sleep(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


@pytest.fixture
def calendar() -> Calendar:
    return Calendar()


@pytest.fixture
def authority(tmp_path: Path, calendar: Calendar) -> Authority:
    authority = Authority(tmp_path / "certificates", calendar)
    authority.establish()
    return authority


def certificate(authority: Authority, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(authority.certificate(name).read_bytes())


def test_a_certificate_says_user_groups_and_hosts(authority: Authority):
    assert authority.issue("kubelet", "system:node:n", ("system:nodes",), ("10.201.0.2", "node-main"))
    made = certificate(authority, "kubelet")
    said = {name.oid: name.value for name in made.subject}
    assert said == {NameOID.COMMON_NAME: "system:node:n", NameOID.ORGANIZATION_NAME: "system:nodes"}
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(each.value) for each in names] == ["10.201.0.2", "node-main"]
    made.verify_directly_issued_by(certificate(authority, "ca"))


def test_every_file_is_its_owners_alone(authority: Authority):
    authority.issue("etcd")
    authority.issue_key("service-accounts")
    files = {file.name: file.stat().st_mode & 0o777 for file in authority.folder.iterdir()}
    assert files == dict.fromkeys(
        ("ca.crt", "ca.key", "etcd.crt", "etcd.key", "service-accounts.key", "service-accounts.pub"), 0o600
    )
    assert authority.folder.stat().st_mode & 0o777 == 0o700


def test_what_is_good_stays(authority: Authority, calendar: Calendar):
    authority.issue("etcd", hosts=("127.0.0.1",))
    authority.issue_key("service-accounts")
    before = {file: file.read_bytes() for file in authority.folder.iterdir()}
    again = Authority(authority.folder, calendar)
    assert not again.establish()
    assert not again.issue("etcd", hosts=("127.0.0.1",))
    again.issue_key("service-accounts")
    assert {file: file.read_bytes() for file in authority.folder.iterdir()} == before
    assert not again.replaced


def test_it_is_renewed_when_two_thirds_of_its_life_are_over(authority: Authority, calendar: Calendar):
    authority.issue("etcd")
    calendar.at += LIFE * 2 / 3 - SLACK - timedelta(minutes=1)
    assert not authority.issue("etcd")
    calendar.at += timedelta(minutes=2)
    assert authority.issue("etcd")
    assert authority.replaced
    assert certificate(authority, "etcd").not_valid_after_utc > calendar.at + LIFE * 2 / 3


def test_a_new_authority_renews_everything(authority: Authority, calendar: Calendar):
    authority.issue("etcd")
    calendar.at += timedelta(days=3000)
    assert authority.establish()
    assert authority.issue("etcd")
    certificate(authority, "etcd").verify_directly_issued_by(certificate(authority, "ca"))


@pytest.mark.parametrize("words", [{"hosts": ("10.201.1.1",)}, {"user": "other"}, {"groups": ("system:masters",)}])
def test_one_that_says_something_else_is_replaced(authority: Authority, words: dict[str, tuple[str, ...]]):
    authority.issue("etcd", hosts=("10.201.0.1",))
    assert authority.issue("etcd", **{"hosts": ("10.201.0.1",), **words})  # pyrefly: ignore
    assert authority.replaced


@pytest.mark.parametrize("broken", ["etcd.crt", "etcd.key"])
def test_one_that_is_half_written_is_made_anew(authority: Authority, broken: str):
    authority.issue("etcd")
    whole = (authority.folder / broken).read_bytes()
    if broken.endswith("key"):
        (authority.folder / broken).unlink()
    else:
        (authority.folder / broken).write_bytes(whole[:100])
    assert authority.issue("etcd")


def test_both_sides_of_a_connection_are_verified(authority: Authority):
    authority.issue("server", hosts=("127.0.0.1",))
    authority.issue("client")
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority.bundle)
    serving.verify_mode = ssl.CERT_REQUIRED
    serving.load_cert_chain(authority.certificate("server"), authority.key("server"))
    asking = ssl.create_default_context(cafile=authority.bundle)
    asking.verify_flags |= ssl.VERIFY_X509_STRICT
    asking.load_cert_chain(authority.certificate("client"), authority.key("client"))
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with serving.wrap_socket(connection, server_side=True) as secured:
                secured.sendall(b"hello")

        thread = threading.Thread(target=serve)
        thread.start()
        with (
            socket.create_connection(listener.getsockname()) as plain,
            asking.wrap_socket(plain, server_hostname="127.0.0.1") as secured,
        ):
            assert secured.recv(5) == b"hello"
        thread.join()

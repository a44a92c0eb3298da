"""The certificate authority issues, renews and replaces certificates, and keeps keys private."""

from __future__ import annotations

import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from manual_clock import ManualClock
from pincompute.base.certificate_authority import CLOCK_SKEW, LIFETIME, Authority


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime.now(UTC))


@pytest.fixture
def authority(tmp_path: Path, clock: ManualClock) -> Authority:
    authority = Authority(tmp_path / "certificates", clock)
    authority.establish()
    return authority


def certificate(authority: Authority, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(authority.certificate(name).read_bytes())


def test_certificate_contains_user_groups_and_hosts(authority: Authority):
    assert authority.issue("kubelet", "system:node:n", ("system:nodes",), ("10.201.0.2", "node-main"))
    issued = certificate(authority, "kubelet")
    subject = {name.oid: name.value for name in issued.subject}
    assert subject == {NameOID.COMMON_NAME: "system:node:n", NameOID.ORGANIZATION_NAME: "system:nodes"}
    names = issued.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(name.value) for name in names] == ["10.201.0.2", "node-main"]
    issued.verify_directly_issued_by(certificate(authority, "ca"))


def test_files_are_readable_by_their_owner_only(authority: Authority):
    authority.issue("etcd")
    authority.issue_key("service-accounts")
    files = {file.name: file.stat().st_mode & 0o777 for file in authority.folder.iterdir()}
    assert files == dict.fromkeys(
        ("ca.crt", "ca.key", "etcd.crt", "etcd.key", "service-accounts.key", "service-accounts.pub"), 0o600
    )
    assert authority.folder.stat().st_mode & 0o777 == 0o700


def test_current_certificates_are_not_replaced(authority: Authority, clock: ManualClock):
    authority.issue("etcd", hosts=("127.0.0.1",))
    authority.issue_key("service-accounts")
    before = {file: file.read_bytes() for file in authority.folder.iterdir()}
    reopened = Authority(authority.folder, clock)
    assert not reopened.establish()
    assert not reopened.issue("etcd", hosts=("127.0.0.1",))
    reopened.issue_key("service-accounts")
    assert {file: file.read_bytes() for file in authority.folder.iterdir()} == before
    assert not reopened.replaced


def test_renews_after_two_thirds_of_the_lifetime(authority: Authority, clock: ManualClock):
    authority.issue("etcd")
    clock.at += LIFETIME * 2 / 3 - CLOCK_SKEW - timedelta(minutes=1)
    assert not authority.issue("etcd")
    clock.at += timedelta(minutes=2)
    assert authority.issue("etcd")
    assert authority.replaced
    assert certificate(authority, "etcd").not_valid_after_utc > clock.at + LIFETIME * 2 / 3


def test_new_ca_reissues_every_certificate(authority: Authority, clock: ManualClock):
    authority.issue("etcd")
    clock.at += timedelta(days=3000)
    assert authority.establish()
    assert authority.issue("etcd")
    certificate(authority, "etcd").verify_directly_issued_by(certificate(authority, "ca"))


@pytest.mark.parametrize("change", [{"hosts": ("10.201.1.1",)}, {"user": "other"}, {"groups": ("system:masters",)}])
def test_replaces_certificate_with_other_names(authority: Authority, change: dict[str, tuple[str, ...]]):
    authority.issue("etcd", hosts=("10.201.0.1",))
    assert authority.issue("etcd", **{"hosts": ("10.201.0.1",), **change})  # pyrefly: ignore
    assert authority.replaced


@pytest.mark.parametrize("damaged", ["etcd.crt", "etcd.key"])
def test_replaces_partially_written_files(authority: Authority, damaged: str):
    authority.issue("etcd")
    whole = (authority.folder / damaged).read_bytes()
    if damaged.endswith("key"):
        (authority.folder / damaged).unlink()
    else:
        (authority.folder / damaged).write_bytes(whole[:100])
    assert authority.issue("etcd")


def test_mutual_tls_verifies_both_sides(authority: Authority):
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


def test_constrained_authority_vouches_for_its_domain_only(tmp_path: Path) -> None:
    """Users add it to their browsers: with its key alone, a thief must not be able to impersonate another host."""
    authority = Authority(tmp_path, name="web", domain="localhost")
    authority.establish()
    hosts = {"hello.me.localhost": "hello.me.localhost", "bank.example.com": "bank.example.com", "127.0.0.1": "address"}
    for host, name in hosts.items():
        authority.issue(name, hosts=(host,))
    assert _accepts_server(authority, "hello.me.localhost", "hello.me.localhost")
    assert not _accepts_server(authority, "bank.example.com", "bank.example.com")
    assert not _accepts_server(authority, "address", "127.0.0.1")
    authority.delegate("further", "spiffe://localhost")
    assert certificate(authority, "ca").extensions.get_extension_for_class(x509.BasicConstraints).value.path_length == 0


def _accepts_server(authority: Authority, name: str, host: str) -> bool:
    """Whether a client that trusts the authority accepts the certificate for this host."""
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(authority.certificate(name), authority.key(name))
    client_context = ssl.create_default_context(cafile=str(authority.bundle))
    to_server, to_client, from_server, from_client = (ssl.MemoryBIO() for _ in range(4))
    server = server_context.wrap_bio(to_server, from_server, server_side=True)
    client = client_context.wrap_bio(to_client, from_client, server_hostname=host)
    for _ in range(4):
        for end in (client, server):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLCertVerificationError:
                return False
            to_server.write(from_client.read())
            to_client.write(from_server.read())
    return client.version() is not None

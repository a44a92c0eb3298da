"""Certificates of hosts: which hosts get one, how many there are, and that none replaces the CA."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from cryptography import x509

from pincompute.agents.host_certificates import HostCertificates, certified_domain
from pincompute.agents.routes import Route
from pincompute.base.certificate_authority import Authority

LISTEN = "127.0.0.1:8443"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    authority = Authority(tmp_path / "web", domain="localhost")
    authority.establish()
    return authority


def routes(*hosts: str) -> list[Route]:
    return [Route(host, "/") for host in hosts]


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("hello.me.localhost", "me.localhost"),
        ("*.me.localhost", "me.localhost"),
        ("me.localhost", "me.localhost"),
        # A wildcard covers one label.
        ("a.hello.me.localhost", ""),
        ("*.localhost", ""),
        ("localhost", ""),
        ("shop.example.com", ""),
        ("localhost.example.com", ""),
        ("", ""),
    ],
)
def test_domain_of_the_certificate(host: str, domain: str) -> None:
    assert certified_domain(host) == domain


def test_one_certificate_for_all_hosts_of_a_project(authority: Authority) -> None:
    """A tenant with a thousand hosts gets one certificate, and hosts elsewhere get none."""
    certificates = HostCertificates(LISTEN, authority.folder)
    hosts = [f"h{index}.me.localhost" for index in range(1000)]
    https = certificates.issue_for(routes(*hosts, *(f"{each}.deep.me.localhost" for each in "abc"), "shop.example.com"))
    assert set(https.certificates) == set(hosts)
    assert len(list(authority.folder.glob("*.crt"))) == 2
    issued = x509.load_pem_x509_certificate(authority.certificate("project-me").read_bytes())
    names = issued.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["me.localhost", "*.me.localhost"]
    assert stat.S_IMODE(https.certificates[hosts[0]].key.stat().st_mode) == 0o600


def test_project_named_like_the_ca_does_not_replace_it(authority: Authority) -> None:
    before = authority.bundle.read_bytes()
    HostCertificates(LISTEN, authority.folder).issue_for(routes("web.ca.localhost"))
    assert authority.bundle.read_bytes() == before


def test_nginx_is_told_once_of_a_new_certificate(authority: Authority) -> None:
    certificates = HostCertificates(LISTEN, authority.folder)
    certificates.issue_for(routes("a.me.localhost"))
    assert certificates.take_renewed()
    certificates.issue_for(routes("a.me.localhost", "b.me.localhost"))
    assert not certificates.take_renewed()
    # nginx refuses a configuration with a missing file, so that it is issued again.
    authority.certificate("project-me").unlink()
    certificates.issue_for(routes("a.me.localhost"))
    assert certificates.take_renewed()


def test_without_the_ca_hosts_have_no_certificate(tmp_path: Path) -> None:
    https = HostCertificates(LISTEN, tmp_path / "missing").issue_for(routes("a.me.localhost"))
    assert https.certificates == {}

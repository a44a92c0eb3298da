"""Certificates that the operator reads by a handshake, and addresses to which it never connects."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pincompute.api.names import WORKLOAD_LABEL
from pincompute.base.certificate_authority import LIFETIME, Authority
from pincompute.base.clock import SystemClock
from pincompute.controller.certificate_probe import (
    HTTPS_PORT,
    MAX_NAMES,
    PROBE_INTERVAL_S,
    CertificateProbe,
    fetch_certificate,
    parse_certificate,
    resolve_public,
)
from pincompute.controller.passes import Key
from pincompute.planning.snapshot import Cluster, Native, ServedCertificate
from runtime_builders import build_resource

CLUSTER = Cluster(name="main", domain="example.com", port=80)
HOST = "shop.me.example.com"
TlsService = tuple[str, dict[str, Any], list[dict[str, str]]]
"""Name, load balancer, and addresses in the status of the Ingress."""
SEEN = ServedCertificate((HOST,), SystemClock().now())


@asynccontextmanager
async def tls_server(context: ssl.SSLContext | None) -> AsyncGenerator[int]:
    """A server that closes each connection after its handshake, if it has any."""

    async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    started = await asyncio.start_server(close, "127.0.0.1", 0, ssl=context)
    async with started:
        yield started.sockets[0].getsockname()[1]


def server_context(folder: Path, *hosts: str) -> ssl.SSLContext:
    authority = Authority(folder)
    authority.establish()
    authority.issue("server", hosts=hosts)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.certificate("server"), authority.key("server"))
    return context


async def test_reads_names_and_expiry_without_trusting_the_certificate(tmp_path: Path) -> None:
    hosts = [f"h{index}.example.com" for index in range(MAX_NAMES + 20)]
    async with tls_server(server_context(tmp_path, *hosts)) as port:
        seen = await fetch_certificate("127.0.0.1", port, "other.example.com")
    assert seen is not None
    assert seen.names == tuple(hosts[:MAX_NAMES])
    assert SystemClock().now() < seen.expires <= SystemClock().now() + LIFETIME


async def test_server_without_tls_has_no_certificate() -> None:
    async with tls_server(None) as port:
        assert await fetch_certificate("127.0.0.1", port, HOST) is None
    assert await fetch_certificate("127.0.0.1", port, HOST) is None


def test_certificate_that_cannot_be_parsed_is_unknown() -> None:
    assert parse_certificate(b"\x30\x82 garbage") is None


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "169.254.169.254", "fe80::1%lo", "0.0.0.0", "224.0.0.1", "a b"]
)
async def test_never_connects_to_this_machine_or_the_metadata_of_a_cloud(address: str) -> None:
    assert await resolve_public(address) == ""


async def test_connects_to_other_addresses() -> None:
    assert await resolve_public("192.0.2.7") == "192.0.2.7"


class FakeCache:
    """Services with TLS, and the certificates that were found."""

    def __init__(self, *services: TlsService) -> None:
        self.services = services
        self.certificates: dict[Key, ServedCertificate] = {}

    def tls_services(self) -> list[tuple[Key, Any, Native]]:
        return [
            (Key("me", name), _service(name, balancer), _ingress(name, points))
            for name, balancer, points in self.services
        ]

    def replace_certificates(self, certificates: dict[Key, ServedCertificate]) -> None:
        self.certificates = certificates


def _service(name: str, balancer: dict[str, Any]) -> Any:
    spec = {"image": "a:1", "port": 80, "loadBalancer": {"tls": "shop-tls", **balancer}}
    return build_resource({"kind": "PinterestService", "metadata": {"name": name, "project": "me"}, "spec": spec})


def _ingress(name: str, points: list[dict[str, str]]) -> Native:
    metadata = {"name": name, "namespace": "me", "labels": {WORKLOAD_LABEL: name}}
    return msgspec.convert({"metadata": metadata, "status": {"loadBalancer": {"ingress": points}}}, Native)


async def probed(cluster: Cluster, *services: TlsService) -> Any:
    """The connections that were made, and the services of which a certificate was found."""
    connections: list[tuple[str, int, str]] = []

    async def fetch(address: str, port: int, host: str) -> ServedCertificate | None:
        connections.append((address, port, host))
        return SEEN if host == HOST else None

    cache: Any = FakeCache(*services)
    await CertificateProbe(cache, cluster, SystemClock(), lambda: True, fetch).probe_all()
    # Addresses are resolved side by side, in any order.
    return sorted(connections), cache.certificates


async def test_probes_each_service_that_a_controller_serves() -> None:
    served = [{"ip": "192.0.2.7"}]
    connections, certificates = await probed(
        CLUSTER,
        ("shop", {}, served),
        ("silent", {}, served),
        ("waiting", {}, []),
        ("local", {}, [{"ip": "127.0.0.1"}]),
    )
    assert connections == [("192.0.2.7", HTTPS_PORT, HOST), ("192.0.2.7", HTTPS_PORT, "silent.me.example.com")]
    assert certificates == {Key("me", "shop"): SEEN}


async def test_probes_an_address_again_after_a_minute_only() -> None:
    clock = ManualClock()
    connections: list[tuple[str, int, str]] = []

    async def fetch(address: str, port: int, host: str) -> ServedCertificate | None:
        connections.append((address, port, host))
        return SEEN

    cache: Any = FakeCache(("shop", {}, [{"ip": "192.0.2.7"}]))
    probe = CertificateProbe(cache, CLUSTER, clock, lambda: True, fetch)
    await probe.probe_all()
    cache.services += (("new", {}, [{"ip": "192.0.2.7"}]),)
    await probe.probe_all()
    assert [host for _, _, host in connections] == [HOST, "new.me.example.com"]
    assert cache.certificates == {Key("me", "shop"): SEEN, Key("me", "new"): SEEN}
    clock.passed_s = PROBE_INTERVAL_S
    cache.services = cache.services[:1]
    await probe.probe_all()
    assert [host for _, _, host in connections] == [HOST, "new.me.example.com", HOST]
    assert cache.certificates == {Key("me", "shop"): SEEN}


class ManualClock(SystemClock):
    """A clock that a test sets."""

    passed_s = 0.0

    def monotonic(self) -> float:
        return self.passed_s


async def test_does_not_probe_what_the_platform_serves_itself() -> None:
    own = msgspec.structs.replace(CLUSTER, own_ingress=True)
    served = [{"ip": "192.0.2.7"}]
    connections, _ = await probed(own, ("shop", {}, served), ("fast", {"class": "fast"}, served))
    assert connections == [("192.0.2.7", HTTPS_PORT, "fast.me.example.com")]

"""Reads the certificates with which the addresses of services with TLS are served, by a TLS handshake.

The operator has no right to read Secrets, and need not have it: the certificate that clients get is public, and shows
also that an ingress controller serves its default one because it cannot use the Secret. Connections go to port 443 of
the addresses that a controller has written to the status of the Ingress, which members of projects cannot write.
Nothing is sent but the handshake.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

import structlog
from cryptography import x509

from pincompute.api.hosts import normalize_host
from pincompute.base.clock import Clock
from pincompute.controller.cluster_cache import ClusterCache
from pincompute.controller.passes import Key
from pincompute.planning.kinds.service import ingress_host
from pincompute.planning.snapshot import Cluster, ServedCertificate

CHECK_INTERVAL_S = 5.0
"""Time after which a new address is noticed."""
PROBE_INTERVAL_S = 60.0
"""Time after which an address is probed again."""
PROBE_TIMEOUT_S = 5.0
MAX_CONCURRENT_PROBES = 4
MAX_NAMES = 100
"""Names of one certificate that are kept."""
HTTPS_PORT = 443

log = structlog.get_logger()


class ProbeTarget(NamedTuple):
    """A host, and the address at which an ingress controller serves it."""

    key: Key
    host: str
    address: str


Fetch = Callable[[str, int, str], Awaitable[ServedCertificate | None]]
"""Reads the certificate for a host at an address and port; None if it cannot be read."""


class CertificateProbe:
    """Probes new addresses at once and each address once a minute, while this operator is the leader."""

    def __init__(
        self,
        cache: ClusterCache,
        cluster: Cluster,
        clock: Clock,
        is_leader: Callable[[], bool],
        fetch: Fetch | None = None,
    ) -> None:
        self._cache = cache
        self._cluster = cluster
        self._clock = clock
        self._is_leader = is_leader
        self._fetch = fetch or fetch_certificate
        self._probed_at: dict[ProbeTarget, float] = {}
        self._found: dict[ProbeTarget, ServedCertificate | None] = {}
        self._free_slots = asyncio.Semaphore(MAX_CONCURRENT_PROBES)

    async def run(self) -> None:
        """Runs until cancelled. A failed round must not end the operator."""
        while True:
            if self._is_leader() and self._cache.complete:
                try:
                    await self.probe_all()
                except Exception:
                    log.exception("certificates not probed")
            await self._clock.sleep(CHECK_INTERVAL_S)

    async def probe_all(self) -> None:
        """Probes the addresses that are due, and hands the certificates of all to the cache."""
        now, targets = self._clock.monotonic(), list(self._targets())
        due = [each for each in targets if now - self._probed_at.get(each, -PROBE_INTERVAL_S) >= PROBE_INTERVAL_S]
        found = dict(zip(due, await asyncio.gather(*(self._probe(each) for each in due)), strict=True))
        self._probed_at = {each: now if each in found else self._probed_at[each] for each in targets}
        known = self._found | found
        self._found = {each: known[each] for each in targets}
        self._cache.replace_certificates({each.key: seen for each, seen in self._found.items() if seen is not None})

    def _targets(self) -> Iterator[ProbeTarget]:
        for key, owner, ingress in self._cache.tls_services():
            # The platform's own ingress serves hosts with its own certificates, whatever the Secret has.
            if self._cluster.own_ingress and not owner.spec.load_balancer.class_:
                continue
            point = next(iter(ingress.status.load_balancer.ingress), None)
            if address := (point.ip or point.hostname) if point else "":
                yield ProbeTarget(key, normalize_host(ingress_host(owner, self._cluster)), address)

    async def _probe(self, target: ProbeTarget) -> ServedCertificate | None:
        async with self._free_slots:
            address = await resolve_public(target.address)
            return await self._fetch(address, HTTPS_PORT, target.host) if address else None


async def resolve_public(address: str) -> str:
    """The IP address; empty if there is none, or it is of this machine or link, such as that of a cloud's metadata."""
    try:
        async with asyncio.timeout(PROBE_TIMEOUT_S):
            found = await asyncio.get_running_loop().getaddrinfo(address, HTTPS_PORT, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, TimeoutError):
        return ""
    resolved = ip_address(str(found[0][4][0]).partition("%")[0])
    resolved = (resolved.ipv4_mapped if isinstance(resolved, IPv6Address) else None) or resolved
    is_local = resolved.is_loopback or resolved.is_link_local or resolved.is_unspecified or resolved.is_multicast
    return "" if is_local else str(resolved)


async def fetch_certificate(address: str, port: int, host: str) -> ServedCertificate | None:
    """The certificate with which the address answers for the host; None if it does not answer by TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # The certificate is read and not trusted: an expired or wrong one is what is looked for, and nothing is sent.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        async with asyncio.timeout(PROBE_TIMEOUT_S):
            _, writer = await asyncio.open_connection(address, port, ssl=context, server_hostname=host)
    except (OSError, TimeoutError):
        return None
    certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.transport.abort()
    return parse_certificate(certificate)


def parse_certificate(certificate: bytes) -> ServedCertificate | None:
    """Names and expiry of a certificate; None if it cannot be parsed."""
    try:
        parsed = x509.load_der_x509_certificate(certificate)
        return ServedCertificate(_names(parsed)[:MAX_NAMES], parsed.not_valid_after_utc.astimezone(UTC))
    except ValueError:
        return None


def _names(certificate: x509.Certificate) -> tuple[str, ...]:
    """Alternative names. The common name does not count, as clients ignore it."""
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return ()
    return tuple(extension.value.get_values_for_type(x509.DNSName))

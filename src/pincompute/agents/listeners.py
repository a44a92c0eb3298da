"""Listeners of the stores, each of which authenticates its callers by certificate: platform processes, or pods."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import NamedTuple

from aiohttp import web
from cryptography import x509
from cryptography.x509.oid import NameOID

from pincompute.agents.identity.bundle import own_id, peer_id, server_context
from pincompute.api.names import CLI_MANAGER, NAME_PREFIX, NODES_NAMESPACE, SYSTEM_NAMESPACE


class Caller(NamedTuple):
    """An authenticated caller; all fields are empty for an unknown one."""

    user: str = ""
    project: str = ""
    workload: str = ""
    """Set for pods, whose certificates name the workload and not the pod."""


def platform_caller(certificate: bytes) -> Caller:
    """Caller of the listener that trusts only the platform's own authority."""
    names = x509.load_der_x509_certificate(certificate).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return Caller(user=str(names[0].value) if len(names) == 1 else "")


LOOPBACK_CALLER = Caller(user=CLI_MANAGER)
"""Caller of the loopback listener: the API server authorizes users for port-forwards to the store's pod."""


def pod_caller(certificate: bytes, trust_domain: str) -> Caller:
    """Caller of the listener that trusts only the signer of pods: a workload, or a part of the platform in a pod."""
    spiffe_id = peer_id(certificate, trust_domain)
    if len(spiffe_id.path) != 2:
        return Caller()
    namespace, name = spiffe_id.path
    if namespace in {SYSTEM_NAMESPACE, NODES_NAMESPACE}:
        return Caller(user=NAME_PREFIX + name)
    return Caller("", namespace, name)


class TlsListener(NamedTuple):
    """Listener for processes of the platform outside the cluster."""

    listen: str
    certificate: Path
    trust: Path

    def ssl_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(self.trust)
        context.load_cert_chain(self.certificate, self.certificate.with_suffix(".key"))
        return context

    def authenticate(self, request: web.Request) -> Caller:
        return platform_caller(_client_certificate(request))


class PodListener(NamedTuple):
    """Listener for pods, whose certificates are from another authority, which is trusted only here."""

    listen: str
    identity: Path
    """Folder of the store's own identity."""

    def ssl_context(self) -> ssl.SSLContext:
        return server_context(self.identity)

    def authenticate(self, request: web.Request) -> Caller:
        return pod_caller(_client_certificate(request), own_id(self.identity).trust_domain)


class LoopbackListener(NamedTuple):
    """Listener for users, whose connections the API server forwards to the loopback address of this pod."""

    listen: str

    def ssl_context(self) -> None:
        """None: the API server's connection to the pod is encrypted already."""

    def authenticate(self, _: web.Request) -> Caller:
        return LOOPBACK_CALLER


Listener = TlsListener | PodListener | LoopbackListener


def _client_certificate(request: web.Request) -> bytes:
    assert request.transport is not None
    tls: ssl.SSLObject = request.transport.get_extra_info("ssl_object")
    return tls.getpeercert(binary_form=True) or b""

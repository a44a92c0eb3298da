"""Authenticates callers of a store by their certificate: a process of the platform, or a pod of a workload."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from cryptography import x509

from pincompute.agents.identity.bundle import peer_id
from pincompute.api.names import CLI_MANAGER, NAME_PREFIX, NODES_NAMESPACE, SYSTEM_NAMESPACE
from pincompute.base.http_process import common_name
from pincompute.planning.pods.certificate_approval import CLOCK_SKEW


class Caller(NamedTuple):
    """An authenticated caller; all fields are empty for an unknown one."""

    user: str = ""
    project: str = ""
    workload: str = ""
    """Set for pods. Their certificates name the workload and not the pod."""
    issued_at: datetime | None = None
    """When the signer issued the certificate of a pod."""
    expires_at: datetime | None = None
    """A connection may outlive the certificate."""


def platform_caller(certificate: bytes) -> Caller:
    """Caller of the listener that trusts only the platform's own authority."""
    return Caller(user=common_name(certificate))


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
    parsed = x509.load_der_x509_certificate(certificate)
    # The signer dates certificates back. Uncorrected, those of a new project would seem older than the project.
    return Caller("", namespace, name, parsed.not_valid_before_utc + CLOCK_SKEW, parsed.not_valid_after_utc)

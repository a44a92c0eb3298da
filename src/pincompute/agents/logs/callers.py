"""Who asks, by the certificate that they show: one of ours, whom the platform vouches for, or a workload's own pod."""

from __future__ import annotations

from typing import NamedTuple

from cryptography import x509
from cryptography.x509.oid import NameOID

from pincompute.agents.identity.bundle import peer_id
from pincompute.agents.logs.pods import Known
from pincompute.api.names import HAND, LOG_SHIPPER, NODES, PREFIX, SYSTEM


class Caller(NamedTuple):
    user: str = ""
    project: str = ""
    workload: str = ""
    """A pod is known by its workload only."""

    def may_write(self, known: Known) -> bool:
        whose = self.project, self.workload
        return self.user == LOG_SHIPPER or (bool(self.workload) and whose == (known.project, known.workload))


def one_of_ours(certificate: bytes) -> Caller:
    """At the door where only the platform's own authority is believed."""
    names = x509.load_der_x509_certificate(certificate).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return Caller(user=str(names[0].value) if len(names) == 1 else "")


WHOEVER_MAY = Caller(user=HAND)
"""At the door within the store's own pod: the API server lets only those come so far who may look into it."""


def a_pod(certificate: bytes, trust_domain: str) -> Caller:
    """At the door where only the signer of pods is believed; the platform's own parts may be pods, too."""
    who = peer_id(certificate, trust_domain)
    if len(who.path) != 2:
        return Caller()
    place, name = who.path
    return Caller(user=PREFIX + name) if place in {SYSTEM, NODES} else Caller("", place, name)

"""Programs that show the certificate of their pod: who they are stands in it, as a SPIFFE ID."""

from __future__ import annotations

from cryptography.x509 import load_der_x509_certificate

from pincompute.api.identity import Identity, Sort
from pincompute.base.clock import Clock
from pincompute.base.problem import Refused
from pincompute.objects.svid import identify
from pincompute.submission.people.door import Shown, not_signed_in
from pincompute.submission.people.tokens import Remembered


class Certificates:
    """Of one trust domain; that a certificate leads to its root, the handshake has shown."""

    def __init__(self, trust_domain: str, clock: Clock) -> None:
        self._trust_domain = trust_domain
        self._clock = clock
        self._known = Remembered()

    async def identify(self, shown: Shown) -> Identity | None:
        if not shown.certificate:
            return None
        now = self._clock.now()
        if found := self._known.find(shown.certificate, now):
            return found
        try:
            who = identify(shown.certificate, self._trust_domain)
        except Refused as refused:
            raise Refused(not_signed_in(refused.problems[0].what, refused.problems[0].next)) from refused
        if len(who.path) != 2:
            raise Refused(not_signed_in(f"{who} is no workload", "ask with the certificate of a workload's pod"))
        until = load_der_x509_certificate(shown.certificate).not_valid_after_utc
        if until <= now:
            # A connection lasts as long as both sides like.
            raise Refused(not_signed_in(f"the certificate of {who} has run out", "connect once more, with a newer one"))
        found = Identity("/".join(who.path), Sort.PROGRAM, until=until)
        self._known.keep(shown.certificate, found, until)
        return found

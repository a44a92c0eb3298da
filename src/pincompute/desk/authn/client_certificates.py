"""Authenticates programs by the certificate of their pod, which holds their SPIFFE ID."""

from __future__ import annotations

from cryptography.x509 import load_der_x509_certificate

from pincompute.api.identity import Identity, IdentityType
from pincompute.base.clock import Clock
from pincompute.base.problem import Refused
from pincompute.desk.authn.authenticator import Credentials, unauthenticated
from pincompute.desk.authn.token_cache import TokenCache
from pincompute.objects.svid import verify_svid


class ClientCertificateAuth:
    """Certificates of one trust domain. The TLS handshake has verified that its root has issued them."""

    def __init__(self, trust_domain: str, clock: Clock) -> None:
        self._trust_domain = trust_domain
        self._clock = clock
        self._cache = TokenCache()

    async def authenticate(self, credentials: Credentials) -> Identity | None:
        if not credentials.certificate:
            return None
        now = self._clock.now()
        if cached := self._cache.cached_identity(credentials.certificate, now):
            return cached
        try:
            spiffe_id = verify_svid(credentials.certificate, self._trust_domain)
        except Refused as refused:
            raise Refused(unauthenticated(refused.problems[0].what, refused.problems[0].next)) from refused
        if len(spiffe_id.path) != 2:
            what = f"{spiffe_id} is not the ID of a workload"
            raise Refused(unauthenticated(what, "use the certificate of a workload's pod"))
        until = load_der_x509_certificate(credentials.certificate).not_valid_after_utc
        if until <= now:
            # It was valid in the handshake, and the connection has outlived it.
            what = f"the certificate of {spiffe_id} has expired"
            raise Refused(unauthenticated(what, "connect again with a renewed certificate"))
        identity = Identity("/".join(spiffe_id.path), IdentityType.PROGRAM, valid_until=until)
        self._cache.cache_identity(credentials.certificate, identity, until)
        return identity

"""Authenticates programs by a token of their Kubernetes service account, which the cluster reviews."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from pincompute.api.identity import Identity, IdentityType
from pincompute.api.names import DESK
from pincompute.base.clock import Clock
from pincompute.base.openid import unverified_claims
from pincompute.base.problem import Refused
from pincompute.desk.authn.authenticator import Credentials, unauthenticated
from pincompute.desk.authn.throttle import AuthThrottle
from pincompute.desk.authn.token_cache import TokenCache, audiences_of

if TYPE_CHECKING:
    from pincompute.desk.authn.signing_keys import SigningKeys

AUDIENCE = DESK
"""Tokens must be issued for the desk. A token for another audience, such as the API server, is rejected: the recipient
of that token could use it here."""
REVIEW_CACHE_TTL = timedelta(minutes=1)
"""After that the token is reviewed again: its pod or service account may have been deleted."""


class TokenReviewer(Protocol):
    """A cluster that verifies service account tokens."""

    async def signing_keys(self) -> dict[str, Any]:
        """The public keys that sign them, as a JSON Web Key Set. Raises Refused if they cannot be read."""
        ...

    async def service_account_of(self, token: str, audience: str) -> str:
        """`NAMESPACE/NAME` of the token's service account; empty if the token is rejected."""
        ...


class ServiceAccountAuth:
    """Asks the cluster for each token, as only the cluster knows whether its pod and its account still exist.

    That costs the cluster, so it is paced. Whoever holds a token with a valid signature is paced by its account, so
    that nobody else can use up what the account may ask. Other tokens are paced by their address.
    """

    def __init__(self, reviewer: TokenReviewer, clock: Clock, throttle: AuthThrottle | None = None) -> None:
        self._reviewer = reviewer
        self._clock = clock
        self._keys: SigningKeys | None = None
        self._cache = TokenCache()
        self._throttle = throttle or AuthThrottle(clock)

    async def authenticate(self, credentials: Credentials) -> Identity | None:
        now = self._clock.now()
        if identity := self._cache.cached_identity(credentials.token.encode(), now):
            return identity
        claims = unverified_claims(credentials.token)
        if AUDIENCE not in audiences_of(claims):
            return None
        account = await self._signed_account(credentials.token)
        async with self._throttle.attempt(credentials, account):
            name = await self._review_token(credentials.token)
        until = datetime.fromtimestamp(claims["exp"], UTC)
        identity = Identity(name, IdentityType.PROGRAM, valid_until=until)
        self._cache.cache_identity(credentials.token.encode(), identity, min(until, now + REVIEW_CACHE_TTL))
        return identity

    async def _signed_account(self, token: str) -> str:
        """The account that a token was issued to; empty if its signature is invalid or cannot be verified here."""
        # Imported here, as the library loads slowly, and a local platform has no such tokens.
        from pincompute.desk.authn.signed_token import signed_subject

        try:
            return await signed_subject(token, self._signing_keys(), self._clock.now().timestamp())
        except Refused:
            # A cluster may keep its keys to itself. It still reviews the token.
            return ""

    def _signing_keys(self) -> SigningKeys:
        from pincompute.desk.authn.signing_keys import SigningKeys

        if self._keys is None:
            self._keys = SigningKeys("the cluster", self._clock, self._reviewer.signing_keys)
        return self._keys

    async def _review_token(self, token: str) -> str:
        name = await self._reviewer.service_account_of(token, AUDIENCE)
        if not name:
            raise Refused(unauthenticated("the cluster rejects this service account token", "use a new token"))
        return name

"""Authenticates users by a token of the OpenID provider, which has their names and groups."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from joserfc import jws, jwt
from joserfc.errors import ExpiredTokenError, JoseError
from joserfc.jwt import JWTClaimsRegistry

from pincompute.api.identity import KUBERNETES_NAME_PREFIX, RESERVED_NAME_PREFIXES, Identity
from pincompute.base.clock import Clock
from pincompute.base.openid import unverified_claims
from pincompute.base.problem import Refused
from pincompute.desk.authn.authenticator import Credentials, unauthenticated
from pincompute.desk.authn.signing_keys import ALGORITHMS, SigningKeys
from pincompute.desk.authn.token_cache import TokenCache, audiences_of

CLOCK_SKEW_S = 60
"""Tolerated difference between the provider's clock and ours."""
TOKEN_CACHE_TTL = timedelta(minutes=5)
"""After that a token is verified again: its key may have been revoked."""
MAX_GROUPS = 1_000


class OpenIdSettings(NamedTuple):
    issuer: str
    audience: str
    """Client ID of the CLI."""
    name_claim: str = "email"
    groups_claim: str = "groups"
    administrators: str = ""
    """Group of the platform's administrators; empty: none."""
    requires_verified_email: bool = True
    """Off for a provider whose tokens have no claim email_verified. An address that it says is not verified is rejected
    in any case."""


class OpenIdAuth:
    """Signatures are verified here, with keys that are fetched seldom however many tokens come.

    So no token has to wait for others: a limit by address would keep out the valid tokens of everybody behind it.
    """

    def __init__(self, settings: OpenIdSettings, clock: Clock, keys: SigningKeys | None = None) -> None:
        self._settings = settings
        self._clock = clock
        self._keys = keys or SigningKeys(settings.issuer, clock)
        self._cache = TokenCache()

    async def authenticate(self, credentials: Credentials) -> Identity | None:
        now = self._clock.now()
        if cached := self._cache.cached_identity(credentials.token.encode(), now):
            return cached
        if unverified_claims(credentials.token).get("iss") != self._settings.issuer:
            return None
        identity = await self._verify(credentials.token)
        assert identity.valid_until is not None
        expires_at = min(identity.valid_until, now + TOKEN_CACHE_TTL)
        self._cache.cache_identity(credentials.token.encode(), identity, expires_at)
        return identity

    async def verify_sign_in(self, token: str, nonce: str) -> Identity:
        """The identity of a token that the provider has issued for the sign-in with this nonce."""
        return await self._verify(token, nonce)

    async def _verify(self, token: str, nonce: str | None = None) -> Identity:
        try:
            claims = await self._verified_claims(token)
            if nonce is not None and claims.get("nonce") != nonce:
                raise ValueError("it was issued for another sign-in")
            return self._identity_of(claims)
        except ExpiredTokenError as error:
            raise Refused(unauthenticated("your login has expired")) from error
        except (JoseError, ValueError, TypeError, OverflowError) as error:
            # A library's message may quote the token; our own ValueErrors do not.
            why = str(error) if type(error) is ValueError else type(error).__name__
            raise Refused(unauthenticated(f"invalid token: {why}")) from error

    async def _verified_claims(self, token: str) -> dict[str, Any]:
        header = jws.extract_compact(token.encode()).headers()
        keys = await self._keys.keys_for(str(header.get("kid", "")))
        claims = jwt.decode(token, keys, algorithms=ALGORITHMS).claims
        JWTClaimsRegistry(
            now=int(self._clock.now().timestamp()),
            leeway=CLOCK_SKEW_S,
            iss={"essential": True, "value": self._settings.issuer},
            aud={"essential": True, "value": self._settings.audience},
            exp={"essential": True},
        ).validate(claims)
        if len(audiences_of(claims)) > 1 and claims.get("azp", self._settings.audience) != self._settings.audience:
            raise ValueError("it was issued to another client")
        return claims

    def _identity_of(self, claims: dict[str, Any]) -> Identity:
        settings = self._settings
        name = claims.get(settings.name_claim)
        if not isinstance(name, str) or not name.strip() or len(name) > 128 or not name.isprintable():
            raise ValueError(f"it has no name in the claim '{settings.name_claim}'")
        if name.startswith(RESERVED_NAME_PREFIXES):
            raise ValueError("its name has a reserved prefix")
        if settings.name_claim == "email" and not self._is_verified(claims):
            raise ValueError("its email address is not verified")
        groups = frozenset(_groups_of(claims.get(settings.groups_claim, ())))
        until = datetime.fromtimestamp(claims["exp"] + CLOCK_SKEW_S, UTC)
        is_admin = bool(settings.administrators) and settings.administrators in groups
        return Identity(name, groups=groups, is_admin=is_admin, valid_until=until)

    def _is_verified(self, claims: dict[str, Any]) -> bool:
        """Whether the provider says that the address is the user's. A missing claim says nothing."""
        if "email_verified" not in claims:
            return not self._settings.requires_verified_email
        return claims["email_verified"] is True


def _groups_of(claim: object) -> Iterable[str]:
    """A list of names, or one name. Kubernetes' own groups are dropped: only Kubernetes may assign them."""
    names = [claim] if isinstance(claim, str) else claim if isinstance(claim, list) else ()
    if len(names) > MAX_GROUPS:
        raise ValueError(f"it has more than {MAX_GROUPS:,} groups")
    return (each for each in names if isinstance(each, str) and each and not each.startswith(KUBERNETES_NAME_PREFIX))

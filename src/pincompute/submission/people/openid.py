"""People whom an OpenID provider has signed in: they show its token, which names them and their groups."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from joserfc import jws, jwt
from joserfc.errors import ExpiredTokenError, JoseError
from joserfc.jwt import JWTClaimsRegistry

from pincompute.api.identity import FOREIGN, RESERVED, Identity
from pincompute.base.clock import Clock
from pincompute.base.openid import claims
from pincompute.base.problem import Refused
from pincompute.submission.people.door import Shown, not_signed_in
from pincompute.submission.people.keys import Keys
from pincompute.submission.people.strangers import Strangers
from pincompute.submission.people.tokens import Remembered, audiences

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Each by a pair of keys. `none` is no algorithm, and one by a shared secret is nothing to be checked here."""
SKEW = 60
"""Seconds that clocks may differ."""
BELIEVED = timedelta(minutes=5)
"""Of a token that was found good, until it is looked at again: its key may have been taken back."""
MOST_GROUPS = 1_000


class OpenIdSettings(NamedTuple):
    issuer: str
    audience: str
    """The client that people sign in as."""
    name_claim: str = "email"
    groups_claim: str = "groups"
    administrators: str = ""
    """The group of those who administer the platform; nobody by default."""


class OpenId:
    def __init__(
        self, settings: OpenIdSettings, clock: Clock, keys: Keys | None = None, strangers: Strangers | None = None
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._keys = keys or Keys(settings.issuer, clock)
        self._known = Remembered()
        self._strangers = strangers or Strangers(clock)

    async def identify(self, shown: Shown) -> Identity | None:
        now = self._clock.now()
        if who := self._known.find(shown.token.encode(), now):
            return who
        if claims(shown.token).get("iss") != self._settings.issuer:
            return None
        async with self._strangers.look(shown):
            who = await self._found(shown)
        assert who.until is not None
        self._known.keep(shown.token.encode(), who, min(who.until, now + BELIEVED))
        return who

    async def _found(self, shown: Shown) -> Identity:
        try:
            return self._named(await self._proven(shown.token))
        except ExpiredTokenError as error:
            raise Refused(not_signed_in("your login has run out")) from error
        except (JoseError, ValueError, TypeError, OverflowError) as error:
            # What a library says of a token may hold some of it.
            why = str(error) if type(error) is ValueError else type(error).__name__
            raise Refused(not_signed_in(f"this token is not good: {why}")) from error

    async def _proven(self, token: str) -> dict[str, Any]:
        header = jws.extract_compact(token.encode()).headers()
        keys = await self._keys.having(str(header.get("kid", "")))
        said = jwt.decode(token, keys, algorithms=ALGORITHMS).claims
        JWTClaimsRegistry(
            now=int(self._clock.now().timestamp()),
            leeway=SKEW,
            iss={"essential": True, "value": self._settings.issuer},
            aud={"essential": True, "value": self._settings.audience},
            exp={"essential": True},
        ).validate(said)
        if len(audiences(said)) > 1 and said.get("azp", self._settings.audience) != self._settings.audience:
            raise ValueError("it was given to another client")
        return said

    def _named(self, said: dict[str, Any]) -> Identity:
        settings = self._settings
        name = said.get(settings.name_claim)
        if not isinstance(name, str) or not name.strip() or len(name) > 128 or not name.isprintable():
            raise ValueError(f"it has no name in '{settings.name_claim}'")
        if name.startswith(FOREIGN):
            raise ValueError("its name is one that nobody may have")
        if settings.name_claim == "email" and said.get("email_verified", True) is not True:
            raise ValueError("nobody has verified its address")
        groups = frozenset(_groups(said.get(settings.groups_claim, ())))
        until = datetime.fromtimestamp(said["exp"] + SKEW, UTC)
        administers = bool(settings.administrators) and settings.administrators in groups
        return Identity(name, groups=groups, administers=administers, until=until)


def _groups(said: object) -> Iterable[str]:
    """One alone may stand there as it is. Kubernetes' own are for Kubernetes to give."""
    named = [said] if isinstance(said, str) else said if isinstance(said, list) else ()
    if len(named) > MOST_GROUPS:
        raise ValueError(f"it names more than {MOST_GROUPS:,} groups")
    return (each for each in named if isinstance(each, str) and each and not each.startswith(RESERVED))

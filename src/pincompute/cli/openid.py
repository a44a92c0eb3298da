"""Signing in at an OpenID provider without a browser of our own: a code that is typed on any device (RFC 8628)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp
import msgspec

from pincompute.base.clock import Clock
from pincompute.base.login import Login
from pincompute.base.openid import DISCOVERY, claims
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import NOT_SIGNED_IN, SIGN_IN_AWAY
from pincompute.kube.addresses import safe

DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
USUAL_LIFE = 300.0
PAUSE = 5.0
_PATIENCE = aiohttp.ClientTimeout(total=30)


class Code(NamedTuple):
    """What a person is asked to do, and what is shown for it in the meantime."""

    address: str
    code: str
    whole: str
    """The address with the code in it, where the provider has one."""
    secret: str
    pause: float


class Provider:
    """Everything that is said to it and that it says goes over TLS, or stays on this machine."""

    def __init__(self, http: aiohttp.ClientSession, issuer: str, client: str, clock: Clock) -> None:
        self._http = http
        self._issuer = issuer
        self._client = client
        self._clock = clock
        self._known: dict[str, Any] = {}

    async def begin(self, scopes: str) -> Code:
        status, said = await self._ask("device_authorization_endpoint", scope=scopes)
        if status != 200:
            raise self._refused(said)
        return Code(
            said["verification_uri"],
            said["user_code"],
            said.get("verification_uri_complete", ""),
            said["device_code"],
            float(said.get("interval", PAUSE)),
        )

    async def finish(self, code: Code) -> Login:
        """Return when somebody has said yes."""
        pause = code.pause
        while True:
            await self._clock.sleep(pause)
            status, said = await self._ask("token_endpoint", grant_type=DEVICE, device_code=code.secret)
            if status == 200:
                return self._login(said, "")
            if said.get("error") == "slow_down":
                pause += PAUSE
            elif said.get("error") != "authorization_pending":
                raise self._refused(said)

    async def renew(self, login: Login) -> Login:
        status, said = await self._ask("token_endpoint", grant_type="refresh_token", refresh_token=login.refresh)
        if status != 200:
            raise self._refused(said)
        return self._login(said, login.refresh)

    async def give_back(self, login: Login) -> None:
        """So that the word is good for nothing any more, where the provider has a way to say that."""
        if login.refresh and "revocation_endpoint" in await self._discovered():
            await self._ask("revocation_endpoint", token=login.refresh)

    def _login(self, said: dict[str, Any], refresh: str) -> Login:
        if "id_token" not in said:
            raise self._refused({"error": "it gave no token that says who you are"})
        usual = self._clock.now().timestamp() + float(said.get("expires_in", USUAL_LIFE))
        until = claims(said["id_token"]).get("exp")
        return Login(
            issuer=self._issuer,
            client=self._client,
            token=said["id_token"],
            refresh=said.get("refresh_token", refresh),
            until=float(until) if isinstance(until, int | float) else usual,
        )

    async def _discovered(self) -> dict[str, Any]:
        if not self._known:
            _, self._known = await self._said("GET", self._issuer + DISCOVERY)
        return self._known

    async def _ask(self, endpoint: str, **words: str) -> tuple[int, dict[str, Any]]:
        known = await self._discovered()
        if endpoint not in known:
            raise self._away(f"it has no {endpoint.replace('_', ' ')}")
        return await self._said("POST", str(known[endpoint]), {"client_id": self._client, **words})

    async def _said(self, method: str, address: str, form: dict[str, str] | None = None) -> tuple[int, dict[str, Any]]:
        try:
            async with self._http.request(method, safe(address), data=form, allow_redirects=False) as answer:
                body = await answer.read()
                return answer.status, msgspec.json.decode(body or b"{}", type=dict[str, Any])
        except (aiohttp.ClientError, TimeoutError, ValueError, msgspec.DecodeError) as error:
            raise self._away(str(error) or type(error).__name__) from error

    def _away(self, why: str) -> Refused:
        what = f"{self._issuer}, where people sign in, did not answer as it should: {why}"
        return Refused(Problem(SIGN_IN_AWAY, what, next="try again"))

    def _refused(self, said: dict[str, Any]) -> Refused:
        why = said.get("error_description") or said.get("error") or "it did not say why"
        what = f"{self._issuer} has not signed you in: {why}"
        return Refused(Problem(NOT_SIGNED_IN, what, next="pin login"))


@asynccontextmanager
async def asked_of(issuer: str, client: str, clock: Clock) -> AsyncIterator[Provider]:
    async with aiohttp.ClientSession(timeout=_PATIENCE) as http:
        yield Provider(http, issuer, client, clock)

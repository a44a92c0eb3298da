"""OpenID Connect login by a device code (RFC 8628): works without a browser on this machine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp
import msgspec

from pincompute.base.clock import Clock
from pincompute.base.openid import DISCOVERY, unverified_claims
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import SIGN_IN_UNAVAILABLE, UNAUTHENTICATED
from pincompute.base.saved_login import SavedLogin
from pincompute.base.urls import require_https

DEVICE_CODE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
DEFAULT_TOKEN_LIFETIME_S = 300.0
DEFAULT_POLL_INTERVAL_S = 5.0
_REQUEST_TIMEOUT = aiohttp.ClientTimeout(total=30)


class DeviceCode(NamedTuple):
    """Device authorization response: the code for the user to confirm, and the one to poll with."""

    verification_url: str
    user_code: str
    complete_url: str
    """The verification URL with the user code in it; empty for a provider that has none."""
    device_code: str
    poll_interval_s: float


class OpenIDProvider:
    """Client of an OpenID provider. All URLs must be https, or on this machine."""

    def __init__(self, http: aiohttp.ClientSession, issuer: str, client: str, clock: Clock) -> None:
        self._http = http
        self._issuer = issuer
        self._client = client
        self._clock = clock
        self._discovery: dict[str, Any] = {}

    async def request_device_code(self, scopes: str) -> DeviceCode:
        status, answer = await self._post("device_authorization_endpoint", scope=scopes)
        if status != 200:
            raise self._rejected(answer)
        return DeviceCode(
            answer["verification_uri"],
            answer["user_code"],
            answer.get("verification_uri_complete", ""),
            answer["device_code"],
            float(answer.get("interval", DEFAULT_POLL_INTERVAL_S)),
        )

    async def await_login(self, code: DeviceCode) -> SavedLogin:
        """Poll until the user has confirmed the code."""
        interval_s = code.poll_interval_s
        while True:
            await self._clock.sleep(interval_s)
            status, answer = await self._post(
                "token_endpoint", grant_type=DEVICE_CODE_GRANT, device_code=code.device_code
            )
            if status == 200:
                return self._login_of(answer, "")
            if answer.get("error") == "slow_down":
                interval_s += DEFAULT_POLL_INTERVAL_S
            elif answer.get("error") != "authorization_pending":
                raise self._rejected(answer)

    async def refresh_login(self, login: SavedLogin) -> SavedLogin:
        status, answer = await self._post("token_endpoint", grant_type="refresh_token", refresh_token=login.refresh)
        if status != 200:
            raise self._rejected(answer)
        return self._login_of(answer, login.refresh)

    async def revoke_login(self, login: SavedLogin) -> None:
        """Revoke the refresh token, where the provider supports it."""
        if login.refresh and "revocation_endpoint" in await self._discover():
            await self._post("revocation_endpoint", token=login.refresh)

    def _login_of(self, answer: dict[str, Any], refresh: str) -> SavedLogin:
        if "id_token" not in answer:
            raise self._rejected({"error": "its response has no ID token"})
        default_expiry = self._clock.now().timestamp() + float(answer.get("expires_in", DEFAULT_TOKEN_LIFETIME_S))
        expiry = unverified_claims(answer["id_token"]).get("exp")
        return SavedLogin(
            issuer=self._issuer,
            client=self._client,
            token=answer["id_token"],
            refresh=answer.get("refresh_token", refresh),
            expires_at=float(expiry) if isinstance(expiry, int | float) else default_expiry,
        )

    async def _discover(self) -> dict[str, Any]:
        if not self._discovery:
            _, self._discovery = await self._request("GET", self._issuer + DISCOVERY)
        return self._discovery

    async def _post(self, endpoint: str, **fields: str) -> tuple[int, dict[str, Any]]:
        discovery = await self._discover()
        if endpoint not in discovery:
            raise self._unavailable(f"it has no {endpoint.replace('_', ' ')}")
        return await self._request("POST", str(discovery[endpoint]), {"client_id": self._client, **fields})

    async def _request(self, method: str, url: str, form: dict[str, str] | None = None) -> tuple[int, dict[str, Any]]:
        try:
            async with self._http.request(method, require_https(url), data=form, allow_redirects=False) as response:
                body = await response.read()
                return response.status, msgspec.json.decode(body or b"{}", type=dict[str, Any])
        except (aiohttp.ClientError, TimeoutError, ValueError, msgspec.DecodeError) as error:
            raise self._unavailable(str(error) or type(error).__name__) from error

    def _unavailable(self, why: str) -> Refused:
        what = f"the sign-in provider {self._issuer} failed: {why}"
        return Refused(Problem(SIGN_IN_UNAVAILABLE, what, next="try again"))

    def _rejected(self, answer: dict[str, Any]) -> Refused:
        why = answer.get("error_description") or answer.get("error") or "no reason given"
        what = f"the sign-in provider {self._issuer} rejected the login: {why}"
        return Refused(Problem(UNAUTHENTICATED, what, next="pin login"))


@asynccontextmanager
async def open_provider(issuer: str, client: str, clock: Clock) -> AsyncIterator[OpenIDProvider]:
    async with aiohttp.ClientSession(timeout=_REQUEST_TIMEOUT) as http:
        yield OpenIDProvider(http, issuer, client, clock)

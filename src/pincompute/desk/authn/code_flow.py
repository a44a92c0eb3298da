"""Sign-in of browsers at an OpenID provider: the authorization code flow with PKCE (RFC 7636).

Until the browser comes back, its own cookie remembers the attempt. So an attempt costs the desk nothing, any desk can
finish it, and an answer of the provider that was meant for another browser fits no cookie here.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import aiohttp
import msgspec

from pincompute.api.identity import Identity
from pincompute.api.session import CALLBACK_PATH, MAX_RETURN_CHARS, SignInCallback
from pincompute.base.clock import Clock
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import DOCUMENT_INVALID, SIGN_IN_UNAVAILABLE
from pincompute.base.urls import require_https
from pincompute.desk.authn.authenticator import MAX_TOKEN_CHARS, unauthenticated
from pincompute.desk.authn.discovery import FETCH_TIMEOUT, discover_provider, read_json
from pincompute.desk.authn.openid import OpenIdAuth
from pincompute.desk.authn.sessions import ATTEMPT_LIFETIME_S
from pincompute.desk.authn.signing_keys import MIN_FETCH_INTERVAL_S

DISCOVERY_TTL_S = 300.0
MAX_ATTEMPT_CHARS = 3_800
"""Browsers keep cookies of 4 KB."""
_AGAIN = "sign in again"


class CodeFlowSettings(NamedTuple):
    issuer: str
    client: str
    scopes: str
    url: str
    """Address of this desk for browsers, such as `https://desk.example.com`."""

    @property
    def redirect_uri(self) -> str:
        """Registered at the provider, which compares it as a whole."""
        return self.url.rstrip("/") + CALLBACK_PATH


class SignInAttempt(msgspec.Struct, frozen=True):
    """What the browser's cookie remembers of one attempt."""

    state: str
    nonce: str
    verifier: str
    return_to: str
    begun_s: int

    def encode(self) -> str:
        return urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str) -> SignInAttempt | None:
        """None for a cookie that is not one of ours."""
        if not text or len(text) > MAX_ATTEMPT_CHARS:
            return None
        try:
            return msgspec.json.decode(urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=cls)
        except (ValueError, RecursionError):
            return None


class CodeFlow:
    def __init__(
        self,
        settings: CodeFlowSettings,
        tokens: OpenIdAuth,
        clock: Clock,
        client_secret: Callable[[], str] = str,
    ) -> None:
        """`client_secret` is read for each sign-in; empty for a public client."""
        self._settings = settings
        self._tokens = tokens
        self._clock = clock
        self._client_secret = client_secret
        self._discovery: dict[str, Any] = {}
        self._discovered_at = self._failed_at = float("-inf")
        self._failure: Problem | None = None
        self._discovery_lock = asyncio.Lock()

    async def begin(self, return_to: str) -> tuple[str, SignInAttempt]:
        """The provider's address for the browser, and the attempt that its cookie remembers."""
        require_own_path(return_to)
        now_s = int(self._clock.now().timestamp())
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        attempt = SignInAttempt(state, nonce, verifier, return_to, now_s)
        endpoint = await self._endpoint("authorization_endpoint")
        challenge = urlsafe_b64encode(hashlib.sha256(attempt.verifier.encode()).digest()).decode().rstrip("=")
        query = {
            "response_type": "code",
            "client_id": self._settings.client,
            "redirect_uri": self._settings.redirect_uri,
            "scope": self._settings.scopes,
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}", attempt

    async def finish(self, answer: SignInCallback, cookie: str) -> tuple[Identity, str]:
        """The identity that the provider vouches for, and the path to return to."""
        attempt = SignInAttempt.decode(cookie)
        if attempt is None or not hmac.compare_digest(answer.state.encode(), attempt.state.encode()):
            raise Refused(unauthenticated("this browser has not begun this sign-in", _AGAIN))
        if self._clock.now().timestamp() - attempt.begun_s > ATTEMPT_LIFETIME_S:
            raise Refused(unauthenticated(f"the sign-in took longer than {ATTEMPT_LIFETIME_S} seconds", _AGAIN))
        require_own_path(attempt.return_to)
        await self._require_issuer(answer.iss)
        if answer.error or not answer.code:
            why = answer.error_description or answer.error or "it sent no code"
            raise Refused(unauthenticated(f"the provider refused the sign-in: {_plain(why)}", _AGAIN))
        token = await self._exchange(answer.code, attempt.verifier)
        return await self._tokens.verify_sign_in(token, attempt.nonce), attempt.return_to

    async def _require_issuer(self, issuer: str) -> None:
        """An answer of another provider, whose code must not be sent to ours, or the reverse (RFC 9207)."""
        is_required = (await self._discover()).get("authorization_response_iss_parameter_supported") is True
        if (issuer or is_required) and issuer != self._settings.issuer:
            raise Refused(unauthenticated("the answer is one of another provider", _AGAIN))

    async def _exchange(self, code: str, verifier: str) -> str:
        """The ID token for a code, which the provider accepts once."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._settings.redirect_uri,
            "client_id": self._settings.client,
            "code_verifier": verifier,
        }
        headers: dict[str, str] = {}
        if secret := self._client_secret():
            methods = (await self._discover()).get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
            if "client_secret_basic" in methods:
                # Encoded as forms are, before base64 (RFC 6749, 2.3.1).
                pair = f"{quote(self._settings.client, safe='')}:{quote(secret, safe='')}"
                headers["Authorization"] = aiohttp.encode_basic_auth(*pair.split(":"))
            else:
                form["client_secret"] = secret
        endpoint = await self._endpoint("token_endpoint")
        try:
            async with (
                aiohttp.ClientSession(timeout=FETCH_TIMEOUT) as session,
                session.post(endpoint, data=form, headers=headers, allow_redirects=False) as response,
            ):
                if response.status >= 500:
                    raise ValueError(f"its token endpoint responded with status {response.status}")
                status, found = response.status, await read_json(response)
        except (aiohttp.ClientError, TimeoutError, ValueError, RecursionError) as error:
            raise self._provider_failed(error) from error
        if status != 200:
            # A code that was used before, or that another client has asked for.
            why = found.get("error", f"status {status}")
            raise Refused(unauthenticated(f"the provider refused the sign-in: {_plain(str(why))}", _AGAIN))
        token = found.get("id_token")
        if not isinstance(token, str) or len(token) > MAX_TOKEN_CHARS:
            raise Refused(unauthenticated("the provider's response has no usable ID token", _AGAIN))
        return token

    async def _endpoint(self, name: str) -> str:
        try:
            return require_https(str((await self._discover())[name]))
        except (KeyError, ValueError) as error:
            raise self._provider_failed(ValueError(f"it has no usable {name.replace('_', ' ')}")) from error

    async def _discover(self) -> dict[str, Any]:
        async with self._discovery_lock:
            now = self._clock.monotonic()
            if self._failure and now - self._failed_at < MIN_FETCH_INTERVAL_S:
                # Requests without credentials lead here, and must not queue up behind a provider that is down.
                raise Refused(self._failure)
            if now - self._discovered_at >= DISCOVERY_TTL_S:
                try:
                    async with aiohttp.ClientSession(timeout=FETCH_TIMEOUT) as session:
                        self._discovery = await discover_provider(session, self._settings.issuer)
                except (aiohttp.ClientError, TimeoutError, ValueError, RecursionError) as error:
                    self._failure, self._failed_at = self._provider_failed(error).problems[0], self._clock.monotonic()
                    raise Refused(self._failure) from error
                self._discovered_at, self._failure = self._clock.monotonic(), None
        return self._discovery

    def _provider_failed(self, error: Exception) -> Refused:
        what = f"the sign-in provider {self._settings.issuer} failed: {error or type(error).__name__}"
        return Refused(Problem(SIGN_IN_UNAVAILABLE, what, next="try again"))


def require_own_path(path: str) -> None:
    """Raises Refused for everything but a path of this desk: a link to the sign-in must not lead to another site."""
    # Browsers read `//host`, `/\\host`, and both with tabs or newlines in between, as an address of another host.
    is_own = path.startswith("/") and not path.startswith(("//", "/\\")) and len(path) <= MAX_RETURN_CHARS
    if not (is_own and path.isascii() and path.isprintable() and "\\" not in path):
        what = f"returnTo must be a path of this desk, of at most {MAX_RETURN_CHARS:,} ASCII characters"
        raise Refused(Problem(DOCUMENT_INVALID, what, next="/"))


def _plain(text: str) -> str:
    """A provider's text, bounded and on one line."""
    return " ".join("".join(each if each.isprintable() else " " for each in text[:200]).split())

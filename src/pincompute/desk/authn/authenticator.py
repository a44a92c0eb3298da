"""Authenticates requests: the first provider that knows the kind of credentials decides."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from typing import NamedTuple, Protocol

from aiohttp import web

from pincompute.api.identity import Identity
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import UNAUTHENTICATED
from pincompute.desk.authn.trusted_proxies import TrustedProxies

_BEARER = "Bearer "
MAX_TOKEN_CHARS = 16_384
SESSION_COOKIE = "__Host-pin-session"
"""The prefix makes browsers accept it over HTTPS only, for this host and all its paths."""
SESSION_CHARS = 43
"""Of 32 random bytes as URL-safe base64."""


class Credentials(NamedTuple):
    """Everything in a request that identifies its caller."""

    token: str = ""
    certificate: bytes = b""
    """The client certificate, as DER. The TLS handshake has verified that a trusted root has issued it."""
    address: str = ""
    forwarded: bool = False
    """The address was told by a trusted proxy."""
    session: str = ""
    """The cookie of a signed-in browser; empty if the request has a header Authorization, too."""

    @classmethod
    def from_request(cls, request: web.Request, proxies: TrustedProxies | None = None) -> Credentials:
        header = request.headers.get("Authorization", "")
        is_bearer = header.startswith(_BEARER) and header.isascii() and len(header) <= MAX_TOKEN_CHARS
        token = header.removeprefix(_BEARER) if is_bearer else ""
        tls = request.transport.get_extra_info("ssl_object") if request.transport else None
        certificate = (tls.getpeercert(binary_form=True) if tls else b"") or b""
        headers = request.headers.getall("X-Forwarded-For", [])
        address = (proxies or TrustedProxies()).client_address(request.remote or "", headers)
        # A client that names its credentials means those, also if they are invalid.
        session = "" if header else request.cookies.get(SESSION_COOKIE, "")
        is_plausible = len(session) == SESSION_CHARS and session.isascii()
        return cls(token, certificate, address.text, address.forwarded, session if is_plausible else "")

    @property
    def is_local(self) -> bool:
        """The request comes from the desk's own machine, and not through a proxy."""
        try:
            return ip_address(self.address).is_loopback and not self.forwarded
        except ValueError:
            return False


class AuthProvider(Protocol):
    """Authenticates one kind of credentials."""

    async def authenticate(self, credentials: Credentials) -> Identity | None:
        """The identity; None for credentials of another kind. Raises Refused for invalid ones of its kind."""
        ...


class Authenticator:
    def __init__(
        self,
        providers: Sequence[AuthProvider],
        login_hint: str = "pin status",
        trusted_proxies: TrustedProxies | None = None,
    ) -> None:
        self._providers = providers
        self._login_hint = login_hint
        self._trusted_proxies = trusted_proxies

    def with_provider(self, provider: AuthProvider) -> Authenticator:
        """A copy that asks one more provider, after its own."""
        return Authenticator((*self._providers, provider), self._login_hint, self._trusted_proxies)

    def credentials_of(self, request: web.Request) -> Credentials:
        return Credentials.from_request(request, self._trusted_proxies)

    async def authenticate(self, credentials: Credentials) -> Identity:
        for provider in self._providers:
            if identity := await provider.authenticate(credentials):
                return identity
        what = "unknown token" if credentials.token else "the request has no credentials"
        raise Refused(unauthenticated(what, self._login_hint))


def unauthenticated(what: str, next_: str = "pin login") -> Problem:
    return Problem(UNAUTHENTICATED, what, next=next_)

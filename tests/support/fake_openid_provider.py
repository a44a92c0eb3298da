"""An OpenID provider as far as the desk uses it: discovery, keys that can be rotated, and codes for tokens."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

AUDIENCE = "pin"
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


class ManualClock:
    """A clock that advances only by sleeping."""

    def __init__(self) -> None:
        self.elapsed_s = 0.0

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.elapsed_s)

    def monotonic(self) -> float:
        return self.elapsed_s

    async def sleep(self, seconds: float) -> None:
        self.elapsed_s += seconds


class FakeProvider:
    def __init__(self) -> None:
        self.keys: list[Any] = [RSAKey.generate_key(2048, {"kid": "1"})]
        self.issuer = ""
        self.claims_to_be = ""
        self.discovery_requests = 0
        self.unavailable = False
        self.names_itself = False
        """Its answers to browsers have `iss` (RFC 9207)."""
        self.tokens: dict[str, str] = {}
        """ID token by code; each is given once."""
        self.exchanges: list[dict[str, str]] = []
        """The forms that were sent to the token endpoint."""

    def rotate(self, name: str) -> None:
        self.keys = [ECKey.generate_key("P-256", {"kid": name})]

    def token(self, algorithm: str = "", key: Any = None, headers: Any = None, **said: Any) -> str:
        key = key or self.keys[0]
        at = int(NOW.timestamp())
        whole = {
            "iss": self.issuer,
            "aud": AUDIENCE,
            "sub": "1",
            "email": "ann@example.com",
            "email_verified": True,
            "iat": at,
            "exp": at + 600,
        }
        whole = {name: value for name, value in {**whole, **said}.items() if value is not None}
        algorithm = algorithm or ("RS256" if isinstance(key, RSAKey) else "ES256")
        return jwt.encode({"alg": algorithm, "kid": key.kid, **(headers or {})}, whole, key, algorithms=[algorithm])

    async def discovery(self, _: web.Request) -> web.Response:
        self.discovery_requests += 1
        if self.unavailable:
            return web.Response(status=503)
        found = {
            "issuer": self.claims_to_be or self.issuer,
            "jwks_uri": f"{self.issuer}/keys",
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "authorization_response_iss_parameter_supported": self.names_itself,
        }
        return web.json_response(found)

    async def exchange(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        self.exchanges.append(form)
        if token := self.tokens.pop(form["code"], None):
            return web.json_response({"id_token": token, "access_token": "unused", "token_type": "Bearer"})
        return web.json_response({"error": "invalid_grant"}, status=400)

    async def jwks(self, _: web.Request) -> web.Response:
        return web.json_response({"keys": [each.as_dict(private=False) for each in self.keys]})


@asynccontextmanager
async def fake_provider() -> AsyncGenerator[FakeProvider]:
    here = FakeProvider()
    app = web.Application()
    app.add_routes([web.get("/.well-known/openid-configuration", here.discovery), web.get("/keys", here.jwks)])
    app.router.add_post("/token", here.exchange)
    async with TestServer(app) as server:
        here.issuer = str(server.make_url("")).rstrip("/")
        yield here

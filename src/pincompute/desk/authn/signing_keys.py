"""The OpenID provider's public keys: fetched when needed, and again when a key is unknown or all are old."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import msgspec
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from pincompute.base.clock import Clock
from pincompute.base.openid import DISCOVERY
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import SIGN_IN_UNAVAILABLE
from pincompute.base.response_body import read_bounded
from pincompute.base.urls import require_https

REFRESH_AFTER_S = 300.0
"""A revoked key is trusted no longer than that."""
MAX_STALE_S = 3600.0
"""How long keys are used while the provider is unavailable."""
MIN_FETCH_INTERVAL_S = 5.0
"""Bounds the requests to the provider, also if clients send tokens with unknown key names."""
FETCH_TIMEOUT = aiohttp.ClientTimeout(total=10)
MAX_KEYS_BYTES = 1 << 20


class SigningKeys:
    def __init__(self, issuer: str, clock: Clock) -> None:
        self._issuer = issuer
        self._clock = clock
        self._keys: KeySet | None = None
        self._key_ids: frozenset[str] = frozenset()
        self._fetched_at = self._tried_at = float("-inf")
        self._fetch_lock = asyncio.Lock()

    async def keys_for(self, key_id: str) -> KeySet:
        """All keys; with this one, if the provider has it."""
        if not self._is_current(key_id):
            async with self._fetch_lock:
                # Another request may have fetched them meanwhile.
                if not self._is_current(key_id):
                    await self._fetch()
        assert self._keys is not None
        return self._keys

    def _is_current(self, key_id: str) -> bool:
        if self._keys is None:
            return False
        now = self._clock.monotonic()
        fresh = now - self._fetched_at < REFRESH_AFTER_S and (not key_id or key_id in self._key_ids)
        return fresh or now - self._tried_at < MIN_FETCH_INTERVAL_S

    async def _fetch(self) -> None:
        self._tried_at = self._clock.monotonic()
        try:
            async with aiohttp.ClientSession(timeout=FETCH_TIMEOUT) as session:
                discovery = await _get_json(session, self._issuer + DISCOVERY)
                if discovery.get("issuer") != self._issuer:
                    raise ValueError(f"its issuer is {discovery.get('issuer')}")
                found = await _get_json(session, require_https(str(discovery["jwks_uri"])))
            # Without symmetric keys: with one, every verifier could sign.
            public = [each for each in found["keys"] if each.get("kty") != "oct" and each.get("use", "sig") == "sig"]
            self._keys = KeySet.import_key_set({"keys": public})
        except (
            aiohttp.ClientError,
            TimeoutError,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            RecursionError,
            JoseError,
        ) as error:
            if self._keys is None or self._clock.monotonic() - self._fetched_at > MAX_STALE_S:
                what = f"the keys of {self._issuer} cannot be fetched: {error or type(error).__name__}"
                raise Refused(Problem(SIGN_IN_UNAVAILABLE, what, next="try again")) from error
            return
        self._key_ids = frozenset(str(each.get("kid", "")) for each in public)
        self._fetched_at = self._clock.monotonic()


async def _get_json(session: aiohttp.ClientSession, address: str) -> dict[str, Any]:
    async with session.get(address, allow_redirects=False) as response:
        if response.status != 200:
            raise ValueError(f"{address} responded with status {response.status}")
        body = await read_bounded(response, MAX_KEYS_BYTES)
        if body is None:
            raise ValueError(f"{address} responded with more than {MAX_KEYS_BYTES:,} bytes")
        found: dict[str, Any] = msgspec.json.decode(body, type=dict[str, Any])
        return found

"""Public keys that sign tokens: fetched when needed, and again when a key is unknown or all are old."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import aiohttp
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from pincompute.base.clock import Clock
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import SIGN_IN_UNAVAILABLE
from pincompute.base.urls import require_https
from pincompute.desk.authn.discovery import FETCH_TIMEOUT as FETCH_TIMEOUT, discover_provider, fetch_json

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Asymmetric ones only: `none` is no signature, and with a shared secret every verifier could sign."""
REFRESH_AFTER_S = 300.0
"""A revoked key is trusted no longer than that."""
MAX_STALE_S = 3600.0
"""How long keys are used while the provider is unavailable."""
MIN_FETCH_INTERVAL_S = 5.0
"""Bounds the requests to the provider, also if clients send tokens with unknown key names."""

FetchKeys = Callable[[], Awaitable[dict[str, Any]]]
"""Returns a JSON Web Key Set. Raises any exception if there is none."""


class SigningKeys:
    def __init__(self, issuer: str, clock: Clock, fetch_keys: FetchKeys | None = None) -> None:
        """Without `fetch_keys`, keys are found by OpenID discovery at the issuer."""
        self._issuer = issuer
        self._fetch_keys = fetch_keys or partial(_discover_keys, issuer)
        self._clock = clock
        self._keys: KeySet | None = None
        self._key_ids: frozenset[str] = frozenset()
        self._fetched_at = self._tried_at = float("-inf")
        self._failure: Problem | None = None
        self._fetch_lock = asyncio.Lock()

    async def keys_for(self, key_id: str) -> KeySet:
        """All keys; with this one, if the provider has it."""
        # A token of a known key does not wait for a fetch that others have caused.
        if not self._is_current(key_id) and not (self._fetch_lock.locked() and self._is_usable(key_id)):
            async with self._fetch_lock:
                # Another request may have fetched them meanwhile.
                if not self._is_current(key_id):
                    await self._fetch()
        if self._keys is None or self._age_s > MAX_STALE_S:
            assert self._failure
            raise Refused(self._failure)
        return self._keys

    @property
    def _age_s(self) -> float:
        return self._clock.monotonic() - self._fetched_at

    def _is_usable(self, key_id: str) -> bool:
        return key_id in self._key_ids and self._age_s <= MAX_STALE_S

    def _is_current(self, key_id: str) -> bool:
        fresh = self._age_s < REFRESH_AFTER_S and (not key_id or key_id in self._key_ids)
        # After a failure, too: a provider that does not respond must not be asked for each token.
        return fresh or self._clock.monotonic() - self._tried_at < MIN_FETCH_INTERVAL_S

    async def _fetch(self) -> None:
        try:
            found = await self._fetch_keys()
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
            Refused,
        ) as error:
            what = f"the keys of {self._issuer} cannot be fetched: {error or type(error).__name__}"
            self._failure = Problem(SIGN_IN_UNAVAILABLE, what, next="try again")
        else:
            self._key_ids = frozenset(str(each.get("kid", "")) for each in public)
            self._fetched_at = self._clock.monotonic()
        self._tried_at = self._clock.monotonic()


async def _discover_keys(issuer: str) -> dict[str, Any]:
    async with aiohttp.ClientSession(timeout=FETCH_TIMEOUT) as session:
        discovery = await discover_provider(session, issuer)
        return await fetch_json(session, require_https(str(discovery["jwks_uri"])))

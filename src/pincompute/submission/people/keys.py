"""The keys of whoever signs people in: fetched when they are needed, and again when one is not known or all are old."""

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
from pincompute.base.reasons import SIGN_IN_AWAY
from pincompute.kube.addresses import safe
from pincompute.kube.reading import whole

OLD = 300.0
"""Seconds after which they are asked for again: a key that was taken back is believed no longer than that."""
STALE = 3600.0
"""So long they do while the provider does not answer."""
PAUSE = 5.0
"""Between two times; whoever shows names of keys that are none makes nobody ask more often."""
PATIENCE = aiohttp.ClientTimeout(total=10)
LARGEST = 1 << 20


class Keys:
    def __init__(self, issuer: str, clock: Clock) -> None:
        self._issuer = issuer
        self._clock = clock
        self._keys: KeySet | None = None
        self._names: frozenset[str] = frozenset()
        self._fetched = self._tried = float("-inf")
        self._turn = asyncio.Lock()

    async def having(self, name: str) -> KeySet:
        """All of them, this one among them if there is such a key."""
        if not self._serves(name):
            async with self._turn:
                if not self._serves(name):
                    await self._fetch()
        assert self._keys is not None
        return self._keys

    def _serves(self, name: str) -> bool:
        now = self._clock.monotonic()
        fresh = self._keys is not None and now - self._fetched < OLD and (not name or name in self._names)
        return fresh or (self._keys is not None and now - self._tried < PAUSE)

    async def _fetch(self) -> None:
        self._tried = self._clock.monotonic()
        try:
            async with aiohttp.ClientSession(timeout=PATIENCE) as session:
                said = await _read(session, self._issuer + DISCOVERY)
                if said.get("issuer") != self._issuer:
                    raise ValueError(f"it says that it is {said.get('issuer')}")
                found = await _read(session, safe(str(said["jwks_uri"])))
            # A secret that both sides share would let everybody sign who can check.
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
            if self._keys is None or self._clock.monotonic() - self._fetched > STALE:
                what = f"the keys of {self._issuer} cannot be read: {error or type(error).__name__}"
                raise Refused(Problem(SIGN_IN_AWAY, what, next="try again")) from error
            return
        self._names = frozenset(str(each.get("kid", "")) for each in public)
        self._fetched = self._clock.monotonic()


async def _read(session: aiohttp.ClientSession, address: str) -> dict[str, Any]:
    async with session.get(address, allow_redirects=False) as answer:
        if answer.status != 200:
            raise ValueError(f"{address} answered {answer.status}")
        body = await whole(answer, LARGEST)
        if body is None:
            raise ValueError(f"{address} answered more than {LARGEST:,} bytes")
        found: dict[str, Any] = msgspec.json.decode(body, type=dict[str, Any])
        return found

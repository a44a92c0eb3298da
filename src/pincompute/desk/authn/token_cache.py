"""Caches credentials that were found valid, so that each request does not check them again."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

from pincompute.api.identity import Identity
from pincompute.base.bounded_map import BoundedMap

MAX_CACHED_IDENTITIES = 10_000


def audiences_of(claims: dict[str, Any]) -> list[str]:
    audience = claims.get("aud", [])
    return [audience] if isinstance(audience, str) else list(audience) if isinstance(audience, list) else []


class TokenCache:
    """Identities by a digest of their credentials: the memory of the process holds no credentials."""

    def __init__(self) -> None:
        self._identities: BoundedMap[bytes, tuple[Identity, datetime]] = BoundedMap(MAX_CACHED_IDENTITIES)

    def cached_identity(self, credentials: bytes, now: datetime) -> Identity | None:
        identity, expires_at = self._identities.get(hashlib.sha256(credentials).digest(), (None, now))
        return identity if now < expires_at else None

    def cache_identity(self, credentials: bytes, identity: Identity, expires_at: datetime) -> None:
        self._identities.put(hashlib.sha256(credentials).digest(), (identity, expires_at))

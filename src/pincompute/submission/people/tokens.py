"""Tokens: for whom they are, and those that were found good: a second look at the same costs nothing."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

from pincompute.api.identity import Identity
from pincompute.base.recent import Recent

MOST = 10_000


def audiences(said: dict[str, Any]) -> list[str]:
    audience = said.get("aud", [])
    return [audience] if isinstance(audience, str) else list(audience) if isinstance(audience, list) else []


class Remembered:
    """By digest, so that nobody finds a token in here."""

    def __init__(self) -> None:
        self._known: Recent[bytes, tuple[Identity, datetime]] = Recent(MOST)

    def find(self, shown: bytes, now: datetime) -> Identity | None:
        who, until = self._known.get(hashlib.sha256(shown).digest(), (None, now))
        return who if now < until else None

    def keep(self, shown: bytes, who: Identity, until: datetime) -> None:
        self._known.note(hashlib.sha256(shown).digest(), (who, until))

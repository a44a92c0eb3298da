"""Tokens: for whom they are, and those that were found good: a second look at the same costs nothing."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from datetime import datetime
from typing import Any

from pincompute.api.identity import Identity

MOST = 10_000


def audiences(said: dict[str, Any]) -> list[str]:
    audience = said.get("aud", [])
    return [audience] if isinstance(audience, str) else list(audience) if isinstance(audience, list) else []


class Remembered:
    """By digest, so that nobody finds a token in here; the eldest make room."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, tuple[Identity, datetime]] = OrderedDict()

    def find(self, shown: bytes, now: datetime) -> Identity | None:
        who, until = self._known.get(hashlib.sha256(shown).digest(), (None, now))
        return who if now < until else None

    def keep(self, shown: bytes, who: Identity, until: datetime) -> None:
        self._known[hashlib.sha256(shown).digest()] = who, until
        while len(self._known) > MOST:
            self._known.popitem(last=False)

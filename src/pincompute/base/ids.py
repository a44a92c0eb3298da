"""Generators of unique ids, injected so that tests are deterministic."""

from __future__ import annotations

import secrets
from typing import Protocol


class Ids(Protocol):
    def new(self, prefix: str) -> str:
        """Return a unique id such as `submission-4f2a…`."""
        ...


class RandomIds:
    def new(self, prefix: str) -> str:
        return f"{prefix}-{secrets.token_hex(8)}"

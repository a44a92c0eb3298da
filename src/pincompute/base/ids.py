"""Ids, handed in: a test decides what comes next, a process draws at random."""

from __future__ import annotations

import secrets
from typing import Protocol


class Ids(Protocol):
    def new(self, prefix: str) -> str:
        """An id that was never given before, such as `submission-4k2m…`."""
        ...


class RandomIds:
    def new(self, prefix: str) -> str:
        return f"{prefix}-{secrets.token_hex(8)}"

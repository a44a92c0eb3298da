"""How often the same is tried once more, and after how long."""

from __future__ import annotations

ATTEMPTS = 3
LONGEST = 10.0
"""Seconds; a server that asks for more patience than this gets its error shown instead."""


def patience(retry_after: float, jitter: float) -> float | None:
    """Seconds that a server is waited for which says when to come back: no less, and not all at once."""
    return retry_after * (1 + jitter / 4) if retry_after <= LONGEST else None


def backoff(failures: int, jitter: float, longest: float = LONGEST) -> float:
    """Seconds after so many failures in a row: doubling, and spread so that many who failed together part ways."""
    return min(longest, 0.1 * 2 ** min(failures, 16)) * (0.5 + jitter / 2)

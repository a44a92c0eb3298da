"""How often and how soon a failed operation is retried."""

from __future__ import annotations

MAX_ATTEMPTS = 3
MAX_WAIT_S = 10.0
"""A server that asks for a longer wait gets its error reported instead."""


def retry_after_wait_s(retry_after_s: float, jitter: float) -> float | None:
    """Seconds to wait after a Retry-After header; None if that exceeds the maximum. `jitter` is between 0 and 1.

    The jitter only adds to the wait: the server named the earliest time.
    """
    return retry_after_s * (1 + jitter / 4) if retry_after_s <= MAX_WAIT_S else None


def backoff_s(failures: int, jitter: float, max_s: float = MAX_WAIT_S) -> float:
    """Exponential backoff after so many consecutive failures. The jitter spreads clients that failed together."""
    return min(max_s, 0.1 * 2 ** min(failures, 16)) * (0.5 + jitter / 2)

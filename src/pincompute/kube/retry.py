"""Whether, and when, a request is sent once more."""

from __future__ import annotations

from pincompute.kube.errors import ApiError, Unreachable
from pincompute.kube.request import Request

ATTEMPTS = 3
LONGEST = 10.0
"""Seconds; a server that asks for more patience than this gets its error shown instead."""


def pause(request: Request, error: ApiError, attempt: int, jitter: float) -> float | None:
    """Seconds to wait before sending it again, or None to give up. `jitter` is drawn from 0 to 1."""
    if attempt >= ATTEMPTS:
        return None
    if error.status in (429, 503) and 0 < error.retry_after <= LONGEST:
        # The server says that it did nothing yet: even a write is safe to repeat.
        return error.retry_after * (1 + jitter / 4)
    if request.safe and (isinstance(error, Unreachable) or error.status in (429, 503)):
        return backoff(attempt, jitter)
    return None


def backoff(failures: int, jitter: float, longest: float = LONGEST) -> float:
    """Seconds after so many failures in a row: doubling, and spread so that many who failed together part ways."""
    return min(longest, 0.1 * 2 ** min(failures, 16)) * (0.5 + jitter / 2)

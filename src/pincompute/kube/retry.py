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
    busy = error.status in (429, 503)
    if busy and error.retry_after:
        # The server says that it did nothing yet: even a write is safe to repeat.
        return patience(error.retry_after, jitter)
    if isinstance(error, Unreachable):
        again = error.how == "absent" or (error.how == "lost" and request.safe)
    else:
        again = busy and request.safe
    return backoff(attempt, jitter) if again else None


def patience(retry_after: float, jitter: float) -> float | None:
    """Seconds that a server is waited for which says when to come back: no less, and not all at once."""
    return retry_after * (1 + jitter / 4) if retry_after <= LONGEST else None


def backoff(failures: int, jitter: float, longest: float = LONGEST) -> float:
    """Seconds after so many failures in a row: doubling, and spread so that many who failed together part ways."""
    return min(longest, 0.1 * 2 ** min(failures, 16)) * (0.5 + jitter / 2)

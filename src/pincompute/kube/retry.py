"""Decides whether and when a failed request is sent again."""

from __future__ import annotations

from pincompute.base.backoff import MAX_ATTEMPTS, backoff_s, retry_after_wait_s
from pincompute.kube.errors import ApiError, Unreachable
from pincompute.kube.request import Request


def retry_delay_s(request: Request, error: ApiError, attempt: int, jitter: float) -> float | None:
    """Seconds to wait before sending it again, or None to give up. `jitter` is drawn from 0 to 1."""
    if attempt >= MAX_ATTEMPTS:
        return None
    busy = error.status in (429, 503)
    if busy and error.retry_after:
        # With Retry-After the server states that it has not begun, so that even a write is safe to repeat.
        return retry_after_wait_s(error.retry_after, jitter)
    if isinstance(error, Unreachable):
        retryable = error.failure == "absent" or (error.failure == "lost" and request.safe)
    else:
        retryable = busy and request.safe
    return backoff_s(attempt, jitter) if retryable else None

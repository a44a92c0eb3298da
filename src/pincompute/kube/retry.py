"""Whether, and when, a request is sent once more."""

from __future__ import annotations

from pincompute.base.pause import ATTEMPTS, backoff, patience
from pincompute.kube.errors import ApiError, Unreachable
from pincompute.kube.request import Request


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

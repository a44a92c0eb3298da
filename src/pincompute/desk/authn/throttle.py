"""Bounds what unknown credentials may cost others: the cluster that is asked to review them.

What is verified here, by a signature, needs no such bound: it costs about as much as rejecting the request. Where the
credentials show their owner before they are reviewed, limits are by owner, otherwise by client address.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from pincompute.base.bounded_map import BoundedMap
from pincompute.base.clock import Clock
from pincompute.base.problem import Refused
from pincompute.base.reasons import UNAUTHENTICATED
from pincompute.desk.authn.authenticator import Credentials
from pincompute.desk.limits.fair_queue import QueueLimits
from pincompute.desk.limits.rate_limiter import RateLimiter
from pincompute.desk.limits.request_queue import RequestQueue, enforce_rate

CHECK_LIMITS = QueueLimits(max_running=8, max_waiting=64, max_per_client=16)
"""For credentials that are checked the first time, or again after their cache entry has expired."""
FAILURES_PER_S = 10.0
"""Invalid credentials of one address or owner, over time."""
FAILURE_BURST_S = 10.0
REJECTION_CACHE_TTL_S = 5.0
"""How long invalid credentials are rejected without another check."""
MAX_CACHED_REJECTIONS = 10_000


class AuthThrottle:
    """Passed by credentials that another server has to check. Those in a provider's cache do not pass it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queue = RequestQueue("requests with unknown credentials", CHECK_LIMITS, clock)
        self._failure_limiter = RateLimiter(FAILURES_PER_S, FAILURE_BURST_S)
        self._rejections: BoundedMap[bytes, tuple[Refused, float]] = BoundedMap(MAX_CACHED_REJECTIONS)
        """Digest of the token to its refusal and the time at which this expires."""

    @asynccontextmanager
    async def attempt(self, credentials: Credentials, owner: str = "") -> AsyncGenerator[None]:
        """Entered to check credentials. Waits for a turn; raises Busy, or the refusal of a former check.

        `owner` must have been verified: anyone can claim to be the owner, and use up what they may ask.
        """
        client = owner or credentials.address
        digest = hashlib.sha256(credentials.token.encode()).digest()
        former, expires_at = self._rejections.get(digest, (None, 0.0))
        if former and self._clock.monotonic() < expires_at:
            raise Refused(*former.problems)
        message = f"too many requests with invalid credentials from {client}"
        enforce_rate(self._failure_limiter, client, self._clock.monotonic(), message)
        with self._queue.enter(client) as slot:
            await slot.wait_turn()
            try:
                yield
            except Refused as refused:
                if refused.problems[0].reason is UNAUTHENTICATED:
                    self._failure_limiter.charge(client, self._clock.monotonic())
                    self._rejections.put(digest, (refused, self._clock.monotonic() + REJECTION_CACHE_TTL_S))
                raise

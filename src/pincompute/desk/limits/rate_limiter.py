"""Rate limit for each client: a token bucket. Pure: the time is an argument."""

from __future__ import annotations

MAX_TRACKED_CLIENTS = 10_000
"""Beyond that the clients charged longest ago are forgotten, and start with a full bucket again."""


class RateLimiter:
    """Allows `rate` requests per second over time, and `burst_s` seconds' worth of them at once.

    For each client it stores the moment until which the bucket's debt reaches (GCRA): one number instead of a level and
    a timestamp, and a client without debt needs no entry.
    """

    def __init__(self, rate: float, burst_s: float) -> None:
        self._interval_s = 1 / rate if rate else 0.0
        """Seconds that one request costs; 0 turns the limit off."""
        # One request is always allowed at once, however slow the rate is.
        self._burst_s = max(burst_s, self._interval_s)
        self._debt_until: dict[str, float] = {}

    def wait_s(self, client: str, now: float) -> float:
        """Seconds until the client may send its next request; 0 if it may now."""
        # Small numbers first: next to a large `now`, rounding would refuse a client without debt.
        debt_s = self._debt_until.get(client, now) - now
        return max(0.0, debt_s - (self._burst_s - self._interval_s))

    def charge(self, client: str, now: float) -> None:
        """Counts one request."""
        if not self._interval_s:
            return
        # Popped and inserted again, so that the dictionary is ordered by the last charge.
        debt_until = max(now, self._debt_until.pop(client, now)) + self._interval_s
        if len(self._debt_until) >= MAX_TRACKED_CLIENTS:
            self._forget_clients(now)
        self._debt_until[client] = debt_until

    def _forget_clients(self, now: float) -> None:
        in_debt = {client: until for client, until in self._debt_until.items() if until > now}
        # Half of them at once, so that this runs seldom.
        self._debt_until = dict(list(in_debt.items())[-MAX_TRACKED_CLIENTS // 2 :])

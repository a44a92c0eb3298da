"""A pace: how often each client may ask. Pure: what time it is comes in."""

from __future__ import annotations

MOST = 10_000
"""Clients that are kept in mind; of those who were there before them nothing is known any more."""


class Pace:
    """So many a second over time, and so many seconds' worth of them at once."""

    def __init__(self, rate: float, seconds: float) -> None:
        self._each = 1 / rate if rate else 0.0
        """Seconds that one is worth; without a rate nothing."""
        # One at a time, however slow it is.
        self._seconds = max(seconds, self._each)
        self._spent: dict[str, float] = {}
        """Until when each has spent what they may; who has none of it left to make up for is not in here."""

    def wait(self, client: str, now: float) -> float:
        """Seconds until they may ask again; 0 where they may now."""
        return max(0.0, self._spent.get(client, now) + self._each - now - self._seconds)

    def take(self, client: str, now: float) -> None:
        if not self._each:
            return
        spent = max(now, self._spent.pop(client, now)) + self._each
        if len(self._spent) >= MOST:
            self._forget(now)
        self._spent[client] = spent

    def _forget(self, now: float) -> None:
        kept = {client: until for client, until in self._spent.items() if until > now}
        # Half of them at once, so that it is seldom done.
        self._spent = dict(list(kept.items())[-MOST // 2 :])

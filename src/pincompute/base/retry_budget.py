"""A budget that bounds retries to a share of all requests."""

from __future__ import annotations


class RetryBudget:
    """Token bucket for retries.

    Each first attempt earns a fraction of a token and each retry spends a whole one, so that retries never exceed that
    share of the load, however long an outage lasts. The reserve allows a few retries while there is little traffic.
    """

    def __init__(self, share: float = 0.1, reserve: float = 10) -> None:
        self._share = share
        self._reserve = reserve
        self._tokens = reserve

    def earn(self) -> None:
        """Record a first attempt."""
        self._tokens = min(self._reserve, self._tokens + self._share)

    def spend(self) -> bool:
        """Take a token for one retry; False if none is left."""
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

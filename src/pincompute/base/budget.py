"""How much may be done once more."""

from __future__ import annotations


class Budget:
    """How many requests may be sent once more: a share of all, and a few. So an outage never multiplies the load."""

    def __init__(self, share: float = 0.1, reserve: float = 10) -> None:
        self._share = share
        self._reserve = reserve
        self._left = reserve

    def earn(self) -> None:
        """For each request that is sent the first time."""
        self._left = min(self._reserve, self._left + self._share)

    def spend(self) -> bool:
        """Whether one more may be sent again."""
        if self._left < 1:
            return False
        self._left -= 1
        return True

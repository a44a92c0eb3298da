"""What was noted of late: so many of the newest, and the eldest make room."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(OrderedDict[K, V]):
    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def note(self, key: K, value: V) -> None:
        """What was noted before is new again."""
        self[key] = value
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)

"""A mapping of bounded size that evicts its oldest entry."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedMap(OrderedDict[K, V]):
    """Keeps the most recently written entries."""

    def __init__(self, max_entries: int) -> None:
        super().__init__()
        self._max_entries = max_entries

    def put(self, key: K, value: V) -> None:
        """Insert or overwrite an entry as the newest one."""
        self[key] = value
        self.move_to_end(key)
        if len(self) > self._max_entries:
            self.popitem(last=False)

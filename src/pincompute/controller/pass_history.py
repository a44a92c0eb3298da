"""Remembers the last passes of each key, so that an operator can read why an object is in its present state."""

from __future__ import annotations

from collections import OrderedDict, deque
from datetime import datetime
from typing import NamedTuple

from pincompute.controller.passes import Key, Outcome

MAX_PASSES_PER_KEY = 12
MAX_KEYS = 2000
"""Keys that were reconciled most recently; the history of others is dropped to bound the memory."""


class PassRecord(NamedTuple):
    """One pass, or several equal ones in a row."""

    at: datetime
    triggers: tuple[str, ...]
    cache_age_s: float
    """Seconds since the API server was last heard, for the kind that was silent the longest."""
    steps: tuple[str, ...]
    why: str
    outcome: Outcome
    duration_s: float
    count: int = 1
    """How many passes this record stands for."""

    def repeats(self, other: PassRecord) -> bool:
        """Whether this pass adds nothing to the one before. A pass that executed steps is never folded."""
        return not self.steps and (self.triggers, self.steps, self.why, self.outcome) == (
            other.triggers,
            other.steps,
            other.why,
            other.outcome,
        )


class PassHistory:
    """Bounded, in memory only, and lost at a restart."""

    def __init__(self) -> None:
        self._records: OrderedDict[Key, deque[PassRecord]] = OrderedDict()
        """The key that was reconciled last is at the end."""

    def add(self, key: Key, record: PassRecord) -> None:
        records = self._records.setdefault(key, deque(maxlen=MAX_PASSES_PER_KEY))
        if records and record.repeats(records[-1]):
            record = record._replace(count=records.pop().count + 1)
        records.append(record)
        self._records.move_to_end(key)
        if len(self._records) > MAX_KEYS:
            self._records.popitem(last=False)

    def find(self, project: str, name: str) -> list[tuple[Key, PassRecord]]:
        """Records of the keys of all kinds with this name, oldest first."""
        found = [
            (key, record)
            for key, records in self._records.items()
            if (key.project, key.name) == (project, name)
            for record in records
        ]
        return sorted(found, key=lambda each: each[1].at)

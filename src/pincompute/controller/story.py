"""A story for each key: its last passes, so that anyone can read how it came to be as it is."""

from __future__ import annotations

from collections import OrderedDict, deque
from datetime import datetime
from typing import NamedTuple

from pincompute.controller.passes import Key, Outcome

PASSES = 12
KEYS = 2000
"""Of the keys that were looked at most recently: what is remembered has a bound."""


class Passed(NamedTuple):
    """One pass, or several in a row that were no different."""

    at: datetime
    causes: tuple[str, ...]
    age: float
    """Seconds since the API server was last heard about the kind that was quiet the longest."""
    steps: tuple[str, ...]
    why: str
    outcome: Outcome
    seconds: float
    times: int = 1

    def like(self, other: Passed) -> bool:
        """Nothing new: a pass that wrote is always worth its line."""
        return not self.steps and (self.causes, self.steps, self.why, self.outcome) == (
            other.causes,
            other.steps,
            other.why,
            other.outcome,
        )


class Story:
    """Kept by the loop, in memory only."""

    def __init__(self) -> None:
        self._keys: OrderedDict[Key, deque[Passed]] = OrderedDict()

    def add(self, key: Key, passed: Passed) -> None:
        told = self._keys.setdefault(key, deque(maxlen=PASSES))
        if told and passed.like(told[-1]):
            passed = passed._replace(times=told.pop().times + 1)
        told.append(passed)
        self._keys.move_to_end(key)
        if len(self._keys) > KEYS:
            self._keys.popitem(last=False)

    def of(self, project: str, name: str) -> list[tuple[Key, Passed]]:
        """Of every key of that name, in the order of time."""
        found = [
            (key, passed)
            for key, told in self._keys.items()
            if (key.project, key.name) == (project, name)
            for passed in told
        ]
        return sorted(found, key=lambda each: each[1].at)

"""What the loop has done so far, counted: plain numbers, which whoever wants metrics reads."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

from pincompute.controller.passes import Key, Made, Outcome

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Seconds: how long passes take is counted between these."""
WORKLOAD = "Workload"
"""The kind of a key that names none."""


class Tally:
    def __init__(self) -> None:
        self.passes: Counter[tuple[str, Outcome]] = Counter()
        """By kind and outcome."""
        self.steps: Counter[tuple[str, str]] = Counter()
        """By verb and kind."""
        self.took = [0] * (len(BOUNDS) + 1)
        """How many passes took as long as each bound, and longer than the one before; the last longer than all."""
        self.seconds = 0.0

    @property
    def made(self) -> int:
        return sum(self.passes.values())

    def add(self, key: Key, made: Made, seconds: float) -> None:
        self.passes[key.kind or WORKLOAD, made.outcome] += 1
        for step in made.steps:
            verb, _, thing = step.partition(" ")
            self.steps[verb, thing.partition("/")[0]] += 1
        self.took[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds

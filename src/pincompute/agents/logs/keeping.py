"""What of the kept lines is shortened and what is removed: a decision over what lies there, made by nobody else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

DAY = 86_400.0


class Limits(NamedTuple):
    total: int = 2 << 30
    """Bytes of all together: the one limit that nothing is taken beyond."""
    reserve: int = 64 << 20
    """Bytes of the disk that are left to others, whatever the total."""
    days: float = 7
    """For so long the last lines are kept of a pod that is gone."""
    lines: int = 200
    """So many they are at least."""
    lives: int = 20
    """Of one container in one pod: one that ends again and again must not fill the store by it."""

    @property
    def spare(self) -> int:
        """What is made room for whenever the house is kept, so that there is some until it is kept again."""
        return self.total // 16


class Lying(NamedTuple):
    """One stream as it lies in the store."""

    place: str
    """Its pod's folder, its container, and its number: unique, and in the order of its lives."""
    pod: str
    container: str
    restart: int
    size: int
    gone: float
    """Seconds since its pod was removed; below zero while it is there."""


class Decision(NamedTuple):
    """In this order: what is not named stays as it is."""

    shortened: tuple[Lying, ...]
    removed: tuple[Lying, ...]


def decide(lying: Sequence[Lying], limits: Limits, short: int) -> Decision:
    """`short` is the size that one of the least number of lines is taken to have at most."""
    # Ordered, and as quickly looked up as a set.
    removed = dict.fromkeys(each for each in lying if each.gone > limits.days * DAY)
    removed |= dict.fromkeys(_former_lives([each for each in lying if each not in removed], limits))
    there = [each for each in lying if each not in removed]
    beyond = sum(each.size for each in there) - (limits.total - limits.spare)
    shortened: list[Lying] = []
    # What has been gone the longest is missed the least; and the last lines of many are worth more than all of a few.
    there.sort(key=lambda each: (-each.gone, each.restart, each.place))
    for each in there:
        if beyond > 0 and each.size > short:
            shortened.append(each)
            beyond -= each.size - short
    for each in there:
        if beyond > 0 and each.gone >= 0:
            removed[each] = None
            beyond -= min(each.size, short)
    return Decision(tuple(each for each in shortened if each not in removed), tuple(removed))


def _former_lives(lying: Sequence[Lying], limits: Limits) -> list[Lying]:
    lives: dict[tuple[str, str], list[Lying]] = {}
    for each in lying:
        lives.setdefault((each.pod, each.container), []).append(each)
    return [each for those in lives.values() for each in sorted(those, key=lambda each: each.restart)[: -limits.lives]]

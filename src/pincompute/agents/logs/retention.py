"""Retention of stored logs: decides which streams are shortened and which are removed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

DAY_S = 86_400.0


class RetentionLimits(NamedTuple):
    """Limits of the log store."""

    total_bytes: int = 2 << 30
    """Size of all streams; no batch is accepted beyond it."""
    reserve_bytes: int = 64 << 20
    """Disk space left free for other programs, even below the total."""
    max_age_days: float = 7
    """How long streams are kept after their pod was deleted."""
    min_lines: int = 200
    """Number of last lines that a shortened stream keeps."""
    max_runs: int = 20
    """Runs kept of one container in one pod, so that a crash loop does not fill the store."""

    @property
    def headroom_bytes(self) -> int:
        """Space freed by each run of retention, for the batches until the next one."""
        return self.total_bytes // 16


class StoredStream(NamedTuple):
    """A stream in the store."""

    relative_path: str
    """Folder of the pod, container and restart number: unique, and ordered by container run."""
    pod: str
    container: str
    restart: int
    size_bytes: int
    deleted_for_s: float
    """Seconds since its pod was deleted; negative while the pod exists."""


class RetentionPlan(NamedTuple):
    """Streams to shorten and to remove; all others stay as they are."""

    to_shorten: tuple[StoredStream, ...]
    to_remove: tuple[StoredStream, ...]


def plan_retention(stored: Sequence[StoredStream], limits: RetentionLimits, shortened_bytes: int) -> RetentionPlan:
    """Removes expired streams, and then frees space until the headroom is available.

    `shortened_bytes` is the assumed size of a shortened stream.
    """
    # Dicts as ordered sets.
    to_remove = dict.fromkeys(each for each in stored if each.deleted_for_s > limits.max_age_days * DAY_S)
    to_remove |= dict.fromkeys(_excess_runs([each for each in stored if each not in to_remove], limits))
    remaining = [each for each in stored if each not in to_remove]
    excess_bytes = sum(each.size_bytes for each in remaining) - (limits.total_bytes - limits.headroom_bytes)
    to_shorten: list[StoredStream] = []
    # Streams of the pods deleted first go first. All are shortened before one is removed, because the last lines of
    # many streams are worth more than all lines of a few.
    remaining.sort(key=lambda each: (-each.deleted_for_s, each.restart, each.relative_path))
    for stream in remaining:
        if excess_bytes > 0 and stream.size_bytes > shortened_bytes:
            to_shorten.append(stream)
            excess_bytes -= stream.size_bytes - shortened_bytes
    for stream in remaining:
        if excess_bytes > 0 and stream.deleted_for_s >= 0:
            to_remove[stream] = None
            excess_bytes -= min(stream.size_bytes, shortened_bytes)
    return RetentionPlan(tuple(each for each in to_shorten if each not in to_remove), tuple(to_remove))


def _excess_runs(stored: Sequence[StoredStream], limits: RetentionLimits) -> list[StoredStream]:
    """The oldest runs of each container beyond the limit."""
    by_container: dict[tuple[str, str], list[StoredStream]] = {}
    for stream in stored:
        by_container.setdefault((stream.pod, stream.container), []).append(stream)
    return [
        each
        for runs in by_container.values()
        for each in sorted(runs, key=lambda stream: stream.restart)[: -limits.max_runs]
    ]

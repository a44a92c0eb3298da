"""Retention of stored logs: decides which streams are shortened, cleared and removed. Pure.

Space is freed where it is used most. A pod and a project have limits of their own; beyond the limit of the whole store
the largest projects are reduced to one common size, so that no project loses a line because of a larger one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from pincompute.agents.logs.position import is_volume_file

DAY_S = 86_400.0
MIN_GAIN_BYTES = 512
"""A stream with less is not rewritten: a cleared stream keeps about a hundred bytes with its position."""

K = TypeVar("K", bound=Hashable)


class RetentionLimits(NamedTuple):
    """Limits of the log store."""

    total_bytes: int = 2 << 30
    """Size of all streams."""
    project_bytes: int = 1 << 30
    pod_bytes: int = 128 << 20
    total_streams: int = 50_000
    project_streams: int = 20_000
    pod_files: int = 100
    """Streams of volume files of one pod: twice as many as its sidecar ships at a time."""
    reserve_bytes: int = 64 << 20
    """Disk space left free for other programs, even below the total."""
    max_age_days: float = 7
    """How long streams are kept after their pod was deleted."""
    min_lines: int = 200
    """Number of last lines that a shortened stream keeps, if they fit."""
    shortened_bytes: int = 256 << 10
    """Largest size of a shortened stream."""
    max_runs: int = 20
    """Runs kept of one container in one pod, so that a crash loop does not fill the store."""


class StoredStream(NamedTuple):
    """A stream in the store."""

    project: str
    pod: str
    """Uid of its pod."""
    container: str
    restart: int
    size_bytes: int
    deleted_for_s: float
    """Seconds since its pod was deleted; negative while the pod exists."""
    written: int
    """Order of the last writes."""

    @property
    def is_file(self) -> bool:
        return is_volume_file(self.container)


class RetentionPlan(NamedTuple):
    """Streams to change; all others stay as they are."""

    to_shorten: tuple[StoredStream, ...] = ()
    """Keep their last lines."""
    to_clear: tuple[StoredStream, ...] = ()
    """Lose all lines and keep the position, so that their shippers do not send the lines again."""
    to_remove: tuple[StoredStream, ...] = ()


def with_headroom(limit: int) -> int:
    """Size to which a group is reduced once it exceeds its limit, so that the next batches fit without another run."""
    return limit - limit // 16


def plan_retention(stored: Sequence[StoredStream], limits: RetentionLimits) -> RetentionPlan:
    """Removes expired streams, and frees space where a pod, a project or all of them exceed a limit."""
    planner = _Planner(stored, limits)
    planner.remove(each for each in stored if each.deleted_for_s > limits.max_age_days * DAY_S)
    planner.remove_excess(lambda each: (each.pod, each.container), limits.max_runs, lambda each: each.restart)
    planner.remove_excess_files()
    planner.limit_counts()
    planner.limit_bytes(lambda each: each.pod, limits.pod_bytes)
    planner.limit_bytes(lambda each: each.project, limits.project_bytes)
    planner.limit_total()
    return planner.plan()


def common_limit(sizes: Mapping[K, int], total: int) -> int:
    """The largest size to which all can be reduced so that they fit together; smaller ones stay as they are."""
    remaining, count = total, len(sizes)
    for size in sorted(sizes.values()):
        if size * count > remaining:
            return max(0, remaining // count)
        remaining -= size
        count -= 1
    return max(sizes.values(), default=0)


class _Planner:
    def __init__(self, stored: Sequence[StoredStream], limits: RetentionLimits) -> None:
        self._limits = limits
        self._sizes = {each: each.size_bytes for each in stored}
        """Size of each stream after the plan; streams to remove are not in it."""
        self._removed: dict[StoredStream, None] = {}
        self._shortened: dict[StoredStream, None] = {}
        self._cleared: dict[StoredStream, None] = {}

    def plan(self) -> RetentionPlan:
        cleared = tuple(each for each in self._cleared if each in self._sizes)
        shortened = tuple(each for each in self._shortened if each in self._sizes and each not in self._cleared)
        return RetentionPlan(shortened, cleared, tuple(self._removed))

    def remove(self, streams: Iterable[StoredStream]) -> None:
        for stream in streams:
            self._removed[stream] = None
            self._sizes.pop(stream, None)

    def remove_excess(
        self, group: Callable[[StoredStream], Hashable], count: int, age: Callable[[StoredStream], int]
    ) -> None:
        """Removes the oldest streams of each group beyond a number."""
        for streams in _grouped(self._sizes, group).values():
            if len(streams) > count:
                self.remove(sorted(streams, key=age)[:-count])

    def remove_excess_files(self) -> None:
        files = _grouped((each for each in self._sizes if each.is_file), lambda each: each.pod)
        for streams in files.values():
            if len(streams) > self._limits.pod_files:
                count = with_headroom(self._limits.pod_files)
                self.remove(sorted(streams, key=lambda each: each.written)[:-count])

    def limit_counts(self) -> None:
        """Removes streams of projects with too many. Those of containers of existing pods stay: they are bounded."""
        for streams in _grouped(self._sizes, lambda each: each.project).values():
            if len(streams) > self._limits.project_streams:
                self._reduce_count(streams, with_headroom(self._limits.project_streams))
        if len(self._sizes) > self._limits.total_streams:
            by_project = _grouped(self._sizes, lambda each: each.project)
            counts = {project: len(streams) for project, streams in by_project.items()}
            limit = common_limit(counts, with_headroom(self._limits.total_streams))
            for streams in by_project.values():
                self._reduce_count(streams, limit)

    def limit_bytes(self, group: Callable[[StoredStream], str], limit: int) -> None:
        for streams in _grouped(self._sizes, group).values():
            if self._size_of(streams) > limit:
                self._reduce(streams, with_headroom(limit))

    def limit_total(self) -> None:
        by_project = _grouped(self._sizes, lambda each: each.project)
        sizes = {project: self._size_of(streams) for project, streams in by_project.items()}
        if sum(sizes.values()) > self._limits.total_bytes:
            limit = common_limit(sizes, with_headroom(self._limits.total_bytes))
            for streams in by_project.values():
                self._reduce(streams, limit)

    def _size_of(self, streams: Iterable[StoredStream]) -> int:
        return sum(self._sizes[each] for each in streams)

    def _reduce_count(self, streams: Sequence[StoredStream], count: int) -> None:
        removable = [each for each in _oldest_first(streams) if each.deleted_for_s >= 0 or each.is_file]
        self.remove(removable[: max(0, len(streams) - count)])

    def _reduce(self, streams: Sequence[StoredStream], limit: int) -> None:
        """Frees space in these streams, oldest first.

        All are shortened before one is removed, because the last lines of many streams are worth more than all lines
        of a few. Shortening a stream writes less than it frees.
        """
        excess = self._size_of(streams) - limit
        ordered = _oldest_first(streams)
        for stream in ordered:
            if excess > 0 and self._sizes[stream] > 2 * self._limits.shortened_bytes:
                excess -= self._sizes[stream] - self._limits.shortened_bytes
                self._sizes[stream] = self._limits.shortened_bytes
                self._shortened[stream] = None
        for stream in ordered:
            if excess > 0 and stream.deleted_for_s >= 0:
                excess -= self._sizes[stream]
                self.remove([stream])
        for stream in ordered:
            if excess > 0 and stream.deleted_for_s < 0 and self._sizes[stream] > MIN_GAIN_BYTES:
                excess -= self._sizes[stream]
                self._sizes[stream] = 0
                self._cleared[stream] = None


def _oldest_first(streams: Iterable[StoredStream]) -> list[StoredStream]:
    """Streams of the pods that were deleted first, then those that were written least recently."""
    return sorted(streams, key=lambda each: (-each.deleted_for_s, each.written))


def _grouped(streams: Iterable[StoredStream], group: Callable[[StoredStream], K]) -> dict[K, list[StoredStream]]:
    found: dict[K, list[StoredStream]] = {}
    for stream in streams:
        found.setdefault(group(stream), []).append(stream)
    return found

"""Read-your-writes: a client that was told of a delivery finds it in the next list.

Lists are answered from the watch cache, which learns of a write some milliseconds after it is acknowledged.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import NamedTuple

from pincompute.api.insight import WriteMark
from pincompute.api.project import Project
from pincompute.base.bounded_map import BoundedMap
from pincompute.planning.footprint import WorkloadKey
from pincompute.platforms.kubernetes.workload_cache import WorkloadCache

WATCH_DELAY_LIMIT_S = 0.5
"""How long a list waits for the cache. After that it is read from the cluster."""
MAX_TRACKED_WRITES = 1024
"""Older writes are forgotten: they have long been visible."""


class _Written(NamedTuple):
    revision: int
    """The cache must have reached this revision."""


class _Deleted(NamedTuple):
    uid: str
    """The cache must not have this object any more, or have it as terminating."""


class ReadYourWrites:
    """The recent writes of one desk to one cluster."""

    def __init__(self, cache: WorkloadCache) -> None:
        self._cache = cache
        self._recent: BoundedMap[WorkloadKey, _Written | _Deleted] = BoundedMap(MAX_TRACKED_WRITES)
        self._marks: BoundedMap[WorkloadKey, WriteMark] = BoundedMap(MAX_TRACKED_WRITES)
        """The same for other readers, of which it is not known what they have received."""

    def note_written(self, key: WorkloadKey, revision: int) -> None:
        self._recent.put(key, _Written(revision))
        self._marks.put(key, WriteMark(kind=key.kind, name=key.name, revision=revision))

    def note_deleted(self, key: WorkloadKey, uid: str) -> None:
        self._recent.put(key, _Deleted(uid))
        self._marks.put(key, WriteMark(kind=key.kind, name=key.name, deleted_uid=uid))

    def marks(self, project: str) -> list[WriteMark]:
        """The recent writes to a project, also those that this cache has."""
        return [mark for key, mark in self._marks.items() if key.project == project]

    async def wait_project(self, revision: int) -> None:
        """Waits until a write of a project is in the cache, or too long: its members are read from there."""
        kind = Project.__name__
        with suppress(TimeoutError):
            async with asyncio.timeout(WATCH_DELAY_LIMIT_S):
                await self._cache.wait_for(kind, lambda: self._cache.revision(kind) >= revision)

    async def wait_visible(self, project: str) -> bool:
        """Waits until all writes to a project are in the cache; False if that takes too long."""
        try:
            async with asyncio.timeout(WATCH_DELAY_LIMIT_S):
                for key in [each for each in self._recent if each.project == project]:
                    await self._cache.wait_for(key.kind, lambda key=key: self._is_visible(key))
                    self._recent.pop(key, None)
        except TimeoutError:
            return False
        return True

    def _is_visible(self, key: WorkloadKey) -> bool:
        match self._recent.get(key):
            case _Written(revision):
                return self._cache.revision(key.kind) >= revision
            case _Deleted(uid):
                cached = self._cache.find(key)
                return cached is None or cached.metadata.uid != uid or bool(cached.metadata.deletion_timestamp)
            case None:
                return True

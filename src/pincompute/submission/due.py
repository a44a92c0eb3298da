"""What was delivered to a cluster and is not yet seen to be there: who was told that it is must find it."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from pincompute.base.recent import Recent
from pincompute.controller.census import Census
from pincompute.planning.quotas.footprint import Place

SOON = 0.5
"""Seconds in which a watch has told it."""
MOST = 1024
"""Of those before them nobody waits any more: they were seen long ago."""


class _Written(NamedTuple):
    revision: int
    """Of the cluster, which must have been seen."""


class _Removed(NamedTuple):
    uid: str
    """Which must no longer be there, or be on its way out."""


class Due:
    def __init__(self, census: Census) -> None:
        self._census = census
        self._places: Recent[Place, _Written | _Removed] = Recent(MOST)

    def written(self, place: Place, revision: int) -> None:
        self._places.note(place, _Written(revision))

    def removed(self, place: Place, uid: str) -> None:
        self._places.note(place, _Removed(uid))

    async def seen(self, project: str) -> bool:
        """Whether all of a project is, after a moment."""
        try:
            async with asyncio.timeout(SOON):
                for place in [each for each in self._places if each.project == project]:
                    await self._census.until(place.kind, lambda place=place: self._is_seen(place))
                    self._places.pop(place, None)
        except TimeoutError:
            return False
        return True

    def _is_seen(self, place: Place) -> bool:
        match self._places.get(place):
            case _Written(revision):
                return self._census.revision(place.kind) >= revision
            case _Removed(uid):
                there = self._census.find(place)
                return there is None or there.metadata.uid != uid or bool(there.metadata.deletion_timestamp)
            case None:
                return True

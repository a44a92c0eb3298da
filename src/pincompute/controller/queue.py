"""What waits for a pass: the most urgent first, and among those each project in its turn."""

from __future__ import annotations

from pincompute.controller.passes import LEVELS, Key

SHARE = 8
"""Every so many turns begin with the least urgent, so that what is urgent without end does not starve the rest."""


class Queue:
    """Each key once. No project waits for all of another's backlog: each gets a turn before any gets the next."""

    def __init__(self) -> None:
        self._levels: list[dict[str, dict[Key, None]]] = [{} for _ in range(LEVELS)]
        self._at: dict[Key, int] = {}
        self._turns = 0

    def __len__(self) -> int:
        return len(self._at)

    def __contains__(self, key: Key) -> bool:
        return key in self._at

    def put(self, key: Key, level: int) -> None:
        """Where it waits already, it moves up and never down."""
        before = self._at.get(key)
        if before is not None:
            if before <= level:
                return
            self._remove(key, before)
        self._at[key] = level
        self._levels[level].setdefault(key.project, {})[key] = None

    def take(self) -> Key | None:
        self._turns += 1
        order = range(LEVELS) if self._turns % SHARE else range(LEVELS - 1, -1, -1)
        for level in order:
            projects = self._levels[level]
            if projects:
                project = next(iter(projects))
                key = next(iter(projects[project]))
                self._remove(key, level)
                if project in projects:
                    # To the end of the row.
                    projects[project] = projects.pop(project)
                return key
        return None

    def _remove(self, key: Key, level: int) -> None:
        del self._at[key]
        of_project = self._levels[level][key.project]
        del of_project[key]
        if not of_project:
            del self._levels[level][key.project]

"""The work queue of the reconcile loop: keys by priority, and within a priority round robin over projects."""

from __future__ import annotations

from pincompute.controller.passes import PRIORITY_COUNT, Key

LOW_PRIORITY_EVERY = 8
"""Every eighth `take` starts with the lowest priority: a steady stream of urgent keys must not starve the rest."""


class WorkQueue:
    """Holds each key at most once.

    Projects take turns: a project with thousands of waiting keys delays another project by one key, not by thousands.
    """

    def __init__(self) -> None:
        self._levels: list[dict[str, dict[Key, None]]] = [{} for _ in range(PRIORITY_COUNT)]
        """Per priority: the waiting keys by project. Dicts, because they keep the order of insertion."""
        self._priorities: dict[Key, int] = {}
        """The priority at which each key waits."""
        self._takes = 0

    def __len__(self) -> int:
        return len(self._priorities)

    def __contains__(self, key: Key) -> bool:
        return key in self._priorities

    def put(self, key: Key, priority: int) -> None:
        """Adds a key. A key that already waits moves to a more urgent priority, never to a less urgent one."""
        before = self._priorities.get(key)
        if before is not None:
            if before <= priority:
                return
            self._remove(key, before)
        self._priorities[key] = priority
        self._levels[priority].setdefault(key.project, {})[key] = None

    def take(self) -> Key | None:
        """Removes and returns the next key, or None if the queue is empty."""
        self._takes += 1
        order = range(PRIORITY_COUNT) if self._takes % LOW_PRIORITY_EVERY else range(PRIORITY_COUNT - 1, -1, -1)
        for priority in order:
            projects = self._levels[priority]
            if projects:
                project = next(iter(projects))
                key = next(iter(projects[project]))
                self._remove(key, priority)
                if project in projects:
                    # Round robin: the project goes to the end of its level.
                    projects[project] = projects.pop(project)
                return key
        return None

    def _remove(self, key: Key, priority: int) -> None:
        del self._priorities[key]
        keys_of_project = self._levels[priority][key.project]
        del keys_of_project[key]
        if not keys_of_project:
            del self._levels[priority][key.project]

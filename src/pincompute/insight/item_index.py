"""Items of one collection in the order of project and name, so that a page is found without sorting."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

from pincompute.api.insight import InsightItem

T = TypeVar("T", bound=InsightItem)


class ItemKey(NamedTuple):
    """Two workloads of different kinds may have the same name, if one was created past the desk."""

    project: str
    name: str
    kind: str


def key_of_item(item: InsightItem) -> ItemKey:
    return ItemKey(item.project, item.name, getattr(item, "kind", ""))


class ItemIndex(Generic[T]):
    """One task writes; readers need no locks."""

    def __init__(self) -> None:
        self.items: dict[ItemKey, T] = {}
        self.version = 0
        """Increases with every change."""
        self._versions: defaultdict[str, int] = defaultdict(int)
        self._keys: defaultdict[str, list[ItemKey]] = defaultdict(list)
        self._projects: list[str] = []

    def store_item(self, item: T) -> T | None:
        """Stores an item, and returns the former one."""
        key = key_of_item(item)
        before = self.items.get(key)
        if before == item:
            return before
        if before is None:
            if key.project not in self._keys:
                insort(self._projects, key.project)
            insort(self._keys[key.project], key)
        self.items[key] = item
        self._count_change(key.project)
        return before

    def discard_item(self, key: ItemKey) -> T | None:
        """Removes an item, and returns it."""
        item = self.items.pop(key, None)
        if item is None:
            return None
        keys = self._keys[key.project]
        del keys[bisect_left(keys, key)]
        if not keys:
            del self._keys[key.project]
            del self._projects[bisect_left(self._projects, key.project)]
        self._count_change(key.project)
        return item

    def in_projects(self, projects: Iterable[str] | None) -> Iterator[T]:
        """The items of projects, of all for None, by project and name."""
        chosen = self._projects if projects is None else sorted(each for each in projects if each in self._keys)
        for project in chosen:
            for key in self._keys[project]:
                yield self.items[key]

    def version_of(self, projects: Iterable[str] | None) -> int:
        """A number that increases with every change in these projects."""
        # Counters of projects only grow, also of those that have no items any more.
        return self.version if projects is None else sum(self._versions.get(each, 0) for each in projects)

    def _count_change(self, project: str) -> None:
        self.version += 1
        self._versions[project] += 1

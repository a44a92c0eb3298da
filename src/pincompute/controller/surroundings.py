"""What workloads are planned by beside themselves: their projects, the cluster's runtimes, and the parts of those."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from pincompute.api.noun import Noun
from pincompute.api.workload import Workload
from pincompute.controller.resources import PROJECTS, RUNTIMES
from pincompute.kube.watch import DELETED, Event
from pincompute.planning.runtimes.runtime import Runtimes, due, runtime_of
from pincompute.planning.runtimes.runtime_roll import health_of

Concerns = Callable[[Noun], bool]


class Surroundings:
    """Kept by the view."""

    def __init__(self) -> None:
        self.projects: dict[str, Any] = {}
        self.runtimes = Runtimes()
        self._nouns: dict[tuple[str, str], Noun] = {}
        """Runtimes and parts."""

    @property
    def rolling(self) -> Noun | None:
        """The runtime that is on its way to everybody."""
        return self.runtimes.known.get(self.runtimes.next)

    def runtimes_for(self, owner: Noun, everything: Iterable[Noun], now: datetime) -> Runtimes:
        """With how the workloads are doing, where the owner goes on by that."""
        if owner is not self.rolling:
            return self.runtimes
        workloads = (each for each in everything if isinstance(each, Workload))
        return self.runtimes._replace(health=health_of(workloads, self.runtimes, now))

    def take(self, event: Event[Noun], now: datetime) -> Concerns | None:
        """Keep it; the answer is whom the change concerns, or nothing where that is nobody."""
        if isinstance(event.object, PROJECTS):
            return self._project(event)
        return self._runtime(event, now) if isinstance(event.object, RUNTIMES) else None

    def _project(self, event: Event[Any]) -> Concerns | None:
        name = event.object.metadata.name
        before = self.projects.pop(name, None)
        after = None if event.type == DELETED else event.object
        if after is not None:
            self.projects[name] = after
        if before is not None and after is not None and before.spec == after.spec:
            return None
        return lambda noun: noun.metadata.namespace == name

    def _runtime(self, event: Event[Noun], now: datetime) -> Concerns | None:
        noun, before = event.object, self.runtimes
        if event.type == DELETED:
            self._nouns.pop((noun.kind, noun.metadata.name), None)
        else:
            self._nouns[noun.kind, noun.metadata.name] = noun
        after = self.runtimes = Runtimes.of(self._nouns.values())
        if _decides(before) == _decides(after):
            return None
        return lambda each: _concerned(each, before, after, now)


def _concerned(noun: Noun, before: Runtimes, after: Runtimes, now: datetime) -> bool:
    """Workloads that get another one, or other parts; and each runtime and part, which speak of one another."""
    if isinstance(noun, Workload):
        return any(each(noun, before, now) != each(noun, after, now) for each in (runtime_of, due))
    return isinstance(noun, RUNTIMES)


def _decides(runtimes: Runtimes) -> object:
    """What others are planned by: what is merely said of a roll does not count."""
    known = {number: each.spec for number, each in runtimes.known.items()}
    parts = {name: each.spec for name, each in runtimes.parts.items()}
    return runtimes.current, runtimes.next, runtimes.cursor, runtimes.unheld, known, parts

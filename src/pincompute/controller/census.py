"""Who lives in a cluster: our nouns and nothing of what they became, kept by watches, for those who count."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pincompute.api.kinds import WORKLOADS
from pincompute.api.noun import Noun
from pincompute.api.project import Project
from pincompute.api.workload import Workload
from pincompute.controller.gather import cluster_facts
from pincompute.controller.resources import NOUNS, PLANNED
from pincompute.controller.surroundings import Surroundings
from pincompute.kube.client import Client
from pincompute.kube.informer import Informer
from pincompute.kube.watch import DELETED, Event
from pincompute.planning.people.preview import LAPTOP
from pincompute.planning.quotas.footprint import Place, ended, nodes
from pincompute.planning.snapshot import Snapshot


class Census:
    """It answers from memory; `changed` are those that may hold something else than when they were last taken."""

    def __init__(self, client: Client) -> None:
        self.changed: set[Place] = set()
        self.news = asyncio.Event()
        self.around = 0
        """How often what is around them has changed."""
        self._names: dict[tuple[str, str], dict[str, None]] = {}
        """By project and kind, in the order in which they came."""
        self._client = client
        self._around = Surroundings()
        self._cluster = LAPTOP
        self._informers: dict[str, Informer[Any]] = {
            kind: Informer(client, NOUNS[kind], type=noun, on_change=self._changed) for kind, noun in PLANNED.items()
        }

    async def run(self) -> None:
        async with asyncio.TaskGroup() as watches:
            for informer in self._informers.values():
                watches.create_task(informer.run())

    async def taken(self) -> None:
        """Everybody was seen, and what the cluster says of itself."""
        for informer in self._informers.values():
            await informer.synced.wait()
        self._cluster = await cluster_facts(self._client)

    def everybody(self) -> Iterable[Place]:
        return [Place(project, kind, name) for kind in WORKLOADS for project, name in self._informers[kind].items]

    def find(self, place: Place) -> Any:
        """The workload, or nothing."""
        return self._informers[place.kind].items.get((place.project, place.name))

    def of(self, project: str) -> list[Workload]:
        return [
            self.find(Place(project, kind, name)) for kind in WORKLOADS for name in self._names.get((project, kind), ())
        ]

    @property
    def stands(self) -> bool:
        """It is told of every change at once."""
        return all(self._informers[kind].stands for kind in WORKLOADS)

    async def until(self, kind: str, predicate: Callable[[], bool]) -> None:
        """Return as soon as what is seen of a kind is as it is to be."""
        await self._informers[kind].wait_for(lambda _: predicate())

    def kind_of(self, project: str, name: str) -> str:
        """Empty where none is known by that name, or several are."""
        known = [kind for kind in WORKLOADS if (project, name) in self._informers[kind].items]
        return known[0] if len(known) == 1 else ""

    def project(self, name: str) -> Project | None:
        return self._around.projects.get(name)

    @property
    def projects(self) -> Mapping[str, Project]:
        return self._around.projects

    def revision(self, kind: str) -> int:
        """Whatever was written to this kind up to here has been seen."""
        return self._informers[kind].revision

    def snapshot(self, owner: Workload) -> Snapshot:
        """As if nothing had been made of it yet: what it wants depends on no native."""
        project = self._around.projects.get(owner.metadata.namespace)
        now = self._client.clock.now()
        return Snapshot(owner, (), (), self._cluster, now, project, self._around.runtimes_for(owner, (), now))

    def take(self) -> set[Place]:
        """Those that changed since this was last asked."""
        taken, self.changed = self.changed, set()
        self.news.clear()
        return taken

    def _changed(self, event: Event[Noun]) -> None:
        noun = event.object
        if isinstance(noun, Workload):
            self._called(noun, there=event.type != DELETED)
            before: Any = event.before
            if event.type == DELETED or before is None or _counts(before) != _counts(noun):
                self.changed.add(Place.of(noun))
                self.news.set()
            return
        self.around += 1
        if concerned := self._around.take(event, self._client.clock.now()):
            self.changed |= {place for place in self.everybody() if concerned(self.find(place))}
            self.news.set()

    def _called(self, workload: Workload, *, there: bool) -> None:
        project, kind, name = Place.of(workload)
        names = self._names.setdefault((project, kind), {})
        if there:
            names[name] = None
            return
        names.pop(name, None)
        if not names:
            del self._names[project, kind]


def _counts(workload: Workload) -> object:
    """All that changes what it holds, or by which it is seen which write was the last."""
    metadata = workload.metadata
    return metadata.uid, metadata.annotations, workload.spec, nodes(workload), ended(workload)

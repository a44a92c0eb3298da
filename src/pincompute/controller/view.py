"""What the operator sees of the cluster: informers, which objects belong to what is planned, and what surrounds it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from pincompute.api.names import KIND, PROJECT, WORKLOAD
from pincompute.api.noun import Noun
from pincompute.api.training_job import PinterestTrainingJob
from pincompute.api.wire import Metadata
from pincompute.api.workload import Workload
from pincompute.base.clock import Clock
from pincompute.controller.passes import Cause, Key
from pincompute.controller.resources import MAKERS, NATIVES, NEIGHBOURS, NOUNS, PLANNED, PROJECT_LABELS, PROJECT_NATIVES
from pincompute.controller.surroundings import Surroundings
from pincompute.kube.client import Client
from pincompute.kube.informer import Informer
from pincompute.kube.resource import PODS, Resource
from pincompute.kube.watch import DELETED, Event
from pincompute.planning.snapshot import Cluster, Native, Pod, Snapshot

Family = dict[tuple[str, str], Any]
"""What belongs to one key, by kind and name."""

COUNTED = 1.0
"""Seconds between two counts of all workloads, of which many change at once in a roll."""


class View:
    """Kept by watches; it answers from memory."""

    def __init__(self, client: Client, changed: Callable[[Key, Cause], None], clock: Clock) -> None:
        self._changed = changed
        self._clock = clock
        self._owners: defaultdict[Key, dict[str, Noun]] = defaultdict(dict)
        """By kind: a name is meant to be one workload's, over all kinds."""
        self._natives: defaultdict[Key, Family] = defaultdict(dict)
        self._pods: defaultdict[Key, Family] = defaultdict(dict)
        self._around = Surroundings()
        self._complete = False
        self._count: asyncio.TimerHandle | None = None
        self._informers: dict[str, Informer[Any]] = {
            **{
                kind: Informer(client, NOUNS[kind], type=noun, on_change=self._owner_changed)
                for kind, noun in PLANNED.items()
            },
            PODS.kind: self._follow(client, PODS, Pod, self._pods, WORKLOAD),
            **{
                kind: self._follow(client, each, Native, self._natives, WORKLOAD)
                for kind, each in {**NATIVES, **MAKERS}.items()
            },
            **{
                kind: self._follow(client, each, Native, self._natives, PROJECT_LABELS)
                for kind, each in PROJECT_NATIVES.items()
            },
        }

    async def run(self) -> None:
        async with asyncio.TaskGroup() as watches:
            for informer in self._informers.values():
                watches.create_task(informer.run())

    async def synced(self) -> None:
        for kind, informer in self._informers.items():
            # What nobody serves can be served any day: those who need it wait, and the others go on.
            await (informer.answered if kind in NEIGHBOURS else informer.synced).wait()
        self._complete = True

    def age(self) -> float:
        """Seconds since the API server was last heard about the kind that is quiet the longest."""
        return max(self.ages().values())

    def ages(self) -> dict[str, float]:
        """The same of each kind that is here."""
        return {kind: informer.age() for kind, informer in self._informers.items() if kind not in self._absent()}

    @property
    def complete(self) -> bool:
        return self._complete

    def owners(self, key: Key) -> tuple[Any, ...]:
        """Those of this name, the eldest first."""
        found = self._owners.get(key, {}).values()
        return tuple(sorted(found, key=lambda each: (each.metadata.creation_timestamp, each.kind)))

    def snapshot(self, owner: Noun, cluster: Cluster) -> Snapshot:
        """Everything known of one key."""
        natives = self._natives.get(key_of(owner), {})
        pods = self._pods.get(key_of(owner), {})
        now = self._clock.now()
        return Snapshot(
            owner,
            # Items of a list do not say their kind; the informer that brought them knows it.
            tuple(msgspec.structs.replace(natives[each], kind=each[0]) for each in sorted(natives)),
            tuple(pods[each] for each in sorted(pods)),
            msgspec.structs.replace(cluster, serves=tuple(each for each in NEIGHBOURS if each not in self._absent())),
            now,
            self._around.projects.get(owner.metadata.namespace),
            self._around.runtimes_for(owner, self._all(), now),
        )

    def includes(self, kind: str, revision: int) -> bool:
        """Whether what was written at this revision of a native's kind can be seen by now."""
        return self._informers[kind].revision >= revision

    @property
    def _seen(self) -> Cause:
        """Before the view is complete everything is found, and nothing has changed."""
        return Cause.SEEN if self._complete else Cause.FOUND

    def _absent(self) -> frozenset[str]:
        """Kinds of neighbours that are not here."""
        return frozenset(kind for kind in NEIGHBOURS if self._informers[kind].problem)

    def _all(self) -> Iterator[Noun]:
        return (each for family in self._owners.values() for each in family.values())

    def _follow(
        self, client: Client, resource: Resource, type_: type[Any], into: defaultdict[Key, Family], labels: str
    ) -> Informer[Any]:
        def changed(event: Event[Any]) -> None:
            key = _whose(event.object.metadata)
            each = resource.kind, event.object.metadata.name
            _keep(into, key, each, event)
            self._changed(key, self._seen)

        # Only what carries our labels is ever decoded; the rest of the cluster is not our business.
        return Informer(
            client, resource, type=type_, labels=labels, on_change=changed, on_problem=lambda _: self._came(resource)
        )

    def _came(self, resource: Resource) -> None:
        """A neighbour came, or went."""
        if self._complete and resource.kind in NEIGHBOURS:
            for owner in [each for each in self._all() if isinstance(each, PinterestTrainingJob)]:
                self._changed(key_of(owner), Cause.AROUND)

    def _owner_changed(self, event: Event[Noun]) -> None:
        owner = event.object
        _keep(self._owners, key_of(owner), owner.kind, event)
        self._changed(key_of(owner), Cause.EDITED if _is_news(event) else self._seen)
        if isinstance(owner, Workload):
            self._count_soon()
        else:
            self._surroundings_changed(event)

    def _surroundings_changed(self, event: Event[Noun]) -> None:
        """Before the view is complete nobody has planned by what was before."""
        concerned = self._around.take(event, self._clock.now())
        if self._complete and concerned:
            # No set: those who come first are the same on every run.
            for key in dict.fromkeys(key_of(each) for each in self._all() if concerned(each)):
                self._changed(key, Cause.AROUND)

    def _count_soon(self) -> None:
        """A roll goes on by how those are doing that it has reached."""
        if self._around.rolling and self._count is None:
            self._count = asyncio.get_running_loop().call_later(COUNTED, self._count_now)

    def _count_now(self) -> None:
        self._count = None
        if self._around.rolling:
            self._changed(key_of(self._around.rolling), Cause.AROUND)


def _is_news(event: Event[Any]) -> bool:
    """Somebody wants it otherwise than it was last looked at."""
    owner = event.object
    return event.type == DELETED or owner.status.observed_generation != owner.metadata.generation


def key_of(owner: Noun) -> Key:
    metadata = owner.metadata
    return Key(metadata.namespace, metadata.name, "" if isinstance(owner, Workload) else owner.kind)


def _whose(metadata: Metadata) -> Key:
    """By our labels: what has the name of no workload is the project's own."""
    labels = metadata.labels
    if WORKLOAD in labels:
        return Key(metadata.namespace, labels[WORKLOAD])
    return Key("", labels.get(PROJECT, ""), labels.get(KIND, ""))


def _keep(into: defaultdict[Key, dict[Any, Any]], key: Key, each: Any, event: Event[Any]) -> None:
    if event.type != DELETED:
        into[key][each] = event.object
        return
    into[key].pop(each, None)
    if not into[key]:
        del into[key]

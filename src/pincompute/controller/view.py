"""What the operator sees of the cluster: informers, which objects belong to what is planned, and what surrounds it."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec
import structlog

from pincompute.api.names import KIND, PROJECT, WORKLOAD
from pincompute.api.noun import Noun
from pincompute.api.training_job import PinterestTrainingJob
from pincompute.api.wire import Metadata, Wire
from pincompute.api.workload import Workload
from pincompute.base.clock import Clock
from pincompute.base.problem import Problem
from pincompute.base.reasons import KIND_NOT_SERVED, RIGHTS_MISSING
from pincompute.controller.passes import Cause, Key
from pincompute.controller.resources import (
    MAKERS,
    NATIVES,
    NEIGHBOURS,
    NOUNS,
    PLANNED,
    PROJECT_LABELS,
    PROJECT_NATIVES,
    WORKLOADS,
)
from pincompute.controller.surroundings import Surroundings
from pincompute.kube.client import Client
from pincompute.kube.informer import Informer
from pincompute.kube.resource import PODS, Resource
from pincompute.kube.watch import DELETED, Event
from pincompute.planning.glass import overdue
from pincompute.planning.snapshot import Cluster, Native, Pod, Snapshot

Family = dict[tuple[str, str], Any]
"""What belongs to one key, by kind and name."""

COUNTED = 1.0
"""Seconds between two counts of all workloads, of which many change at once in a roll."""


log = structlog.get_logger()


class Spoiled(Wire, frozen=True):
    """What can be read of an owner that cannot be read."""

    metadata: Metadata
    status: dict[str, Any] = msgspec.field(default_factory=dict)
    why: str = ""


class View:
    """Kept by watches; it answers from memory."""

    def __init__(self, client: Client, changed: Callable[[Key, Cause], None], clock: Clock) -> None:
        self._changed = changed
        self._clock = clock
        self._owners: defaultdict[Key, dict[str, Noun]] = defaultdict(dict)
        """By kind: a name is meant to be one workload's, over all kinds."""
        self._natives: defaultdict[Key, Family] = defaultdict(dict)
        self._pods: defaultdict[Key, Family] = defaultdict(dict)
        self._spoiled: defaultdict[Key, dict[str, Spoiled]] = defaultdict(dict)
        """By kind: owners that are there and cannot be read."""
        self._around = Surroundings()
        self._complete = False
        self._count: asyncio.TimerHandle | None = None
        self._counted = -COUNTED
        """When that was last asked for."""
        self._informers: dict[str, Informer[Any]] = {
            **{
                kind: Informer(
                    client,
                    NOUNS[kind],
                    type=noun,
                    on_change=self._owner_changed,
                    on_problem=partial(self._problem_changed, kind),
                    on_unreadable=partial(self._owner_spoiled, kind),
                )
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
        """Everything was seen that can be: a kind that the cluster does not show keeps no other waiting."""
        for informer in self._informers.values():
            await informer.answered.wait()
        self._complete = True

    def age(self) -> float:
        """Seconds since the API server was last heard about the kind that is quiet the longest."""
        return max(self.ages().values())

    def ages(self) -> dict[str, float]:
        """The same of each kind that is here."""
        return {kind: informer.age() for kind, informer in self._informers.items() if kind not in self._absent()}

    def still(self) -> float:
        """Seconds for which the watch that stands still the longest has neither heard nor tried anything."""
        return max(each.still() for each in self._informers.values())

    def hurry(self) -> None:
        """The API server answers: no watch that broke waits until it would try again by itself."""
        for each in self._informers.values():
            each.hurry()

    @property
    def complete(self) -> bool:
        return self._complete

    @property
    def unseen(self) -> dict[str, Problem]:
        """Kinds that the cluster does not show us, and why."""
        return {kind: _unseen(kind, each.problem) for kind, each in self._informers.items() if each.problem}

    def spoiled(self, key: Key) -> dict[str, Spoiled]:
        """By kind: what is there by this name, and cannot be read."""
        return self._spoiled.get(key, {})

    def forget_spoiled(self, key: Key, kind: str) -> None:
        self._spoiled.get(key, {}).pop(kind, None)

    def owners(self, key: Key) -> tuple[Any, ...]:
        """Those of this name, the eldest first."""
        found = self._owners.get(key, {}).values()
        return tuple(sorted(found, key=lambda each: (each.metadata.creation_timestamp, each.kind)))

    def unreviewed(self) -> Counter[tuple[str, bool]]:
        """How many workloads run so, by project, and whether it lasts longer than was asked for."""
        now, workloads = self._clock.now(), (each for each in self._all() if isinstance(each, Workload))
        behind = (each for each in workloads if each.spec.break_glass)
        return Counter((each.metadata.namespace, overdue(each, now) is not None) for each in behind)

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
        return Informer(
            client,
            resource,
            type=type_,
            # Only what carries our labels is ever decoded; the rest of the cluster is not our business.
            labels=labels,
            on_change=partial(self._member_changed, into, resource.kind),
            on_problem=partial(self._problem_changed, resource.kind),
        )

    def _member_changed(self, into: defaultdict[Key, Family], kind: str, event: Event[Any]) -> None:
        key = _whose(event.object.metadata)
        each = kind, event.object.metadata.name
        if event.before is not None and (former := _whose(event.before.metadata)) != key:
            # Somebody gave it another label: it has left those it belonged to.
            _keep(into, former, each, Event(DELETED, event.before))
            self._changed(former, self._seen)
        _keep(into, key, each, event)
        self._changed(key, self._seen)

    def _owner_changed(self, event: Event[Noun]) -> None:
        owner = event.object
        self.forget_spoiled(key_of(owner), owner.kind)
        _keep(self._owners, key_of(owner), owner.kind, event)
        self._changed(key_of(owner), Cause.EDITED if _is_news(event) else self._seen)
        if isinstance(owner, Workload):
            self._count_soon()
        else:
            self._surroundings_changed(event)

    def _owner_spoiled(self, kind: str, event: Event[msgspec.Raw], why: str) -> None:
        """Written under another schema than ours: nothing is done for it, and nothing undone."""
        spoiled = msgspec.json.decode(event.object, type=Spoiled)
        metadata = spoiled.metadata
        key = Key(metadata.namespace, metadata.name, "" if kind in WORKLOADS else kind)
        if event.type == DELETED:
            self.forget_spoiled(key, kind)
        else:
            self._spoiled[key][kind] = msgspec.structs.replace(spoiled, why=why)
        self._changed(key, Cause.EDITED)

    def _problem_changed(self, kind: str, problem: Problem | None) -> None:
        """What cannot be seen is told by everybody whom it could concern, and so is that it can be seen again."""
        if problem and kind not in NEIGHBOURS:
            log.warning("a kind cannot be seen", kind=kind, why=problem.what)
        if self._complete and kind not in NOUNS:
            concerned = PinterestTrainingJob if kind in NEIGHBOURS else Noun
            for owner in [each for each in self._all() if isinstance(each, concerned)]:
                self._changed(key_of(owner), Cause.AROUND)

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
            # The last of a wave comes alone, and the next wave waits for it: it is counted at once.
            left = self._counted + COUNTED - self._clock.monotonic()
            self._count = asyncio.get_running_loop().call_later(max(0.0, left), self._count_now)

    def _count_now(self) -> None:
        self._count, self._counted = None, self._clock.monotonic()
        if self._around.rolling:
            self._changed(key_of(self._around.rolling), Cause.AROUND)


def _unseen(kind: str, problem: Problem) -> Problem:
    if problem.reason is KIND_NOT_SERVED:
        return problem._replace(next=f"install what brings {kind}; it is seen as soon as it is there")
    note = "what runs goes on, and nothing is changed until it is seen again"
    return Problem(RIGHTS_MISSING, problem.what, problem.where, note, problem.next or "pin up")


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

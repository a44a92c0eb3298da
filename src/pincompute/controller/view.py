"""What the operator sees of the cluster: informers, and which objects belong to which workload."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from pincompute.api.names import WORKLOAD
from pincompute.api.workload import Workload
from pincompute.controller.loop import Key
from pincompute.controller.resources import NATIVES, NOUNS, WORKLOADS
from pincompute.kube.client import Client
from pincompute.kube.informer import Informer
from pincompute.kube.resource import PODS, Resource
from pincompute.kube.watch import DELETED, Event
from pincompute.planning.snapshot import Cluster, Native, Pod, Snapshot

Family = dict[tuple[str, str], Any]
"""The objects of one workload, by kind and name."""


class View:
    """Kept by watches; it answers from memory."""

    def __init__(self, client: Client, changed: Callable[[Key], None]) -> None:
        self._changed = changed
        self._owners: defaultdict[Key, dict[str, Workload]] = defaultdict(dict)
        """By kind: a name is meant to be one workload's, over all kinds."""
        self._natives: defaultdict[Key, Family] = defaultdict(dict)
        self._pods: defaultdict[Key, Family] = defaultdict(dict)
        self._informers: dict[str, Informer[Any]] = {
            **{
                kind: Informer(client, NOUNS[kind], type=noun, on_change=self._owner_changed)
                for kind, noun in WORKLOADS.items()
            },
            PODS.kind: self._follow(client, PODS, Pod, self._pods),
            **{kind: self._follow(client, each, Native, self._natives) for kind, each in NATIVES.items()},
        }

    async def run(self) -> None:
        async with asyncio.TaskGroup() as watches:
            for informer in self._informers.values():
                watches.create_task(informer.run())

    async def synced(self) -> None:
        for informer in self._informers.values():
            await informer.synced.wait()

    def age(self) -> float:
        """Seconds since the API server was last heard about the kind that is quiet the longest."""
        return max(informer.age() for informer in self._informers.values())

    def owners(self, key: Key) -> tuple[Workload, ...]:
        """Those of this name, the eldest first."""
        found = self._owners.get(key, {}).values()
        return tuple(sorted(found, key=lambda each: (each.metadata.creation_timestamp, each.kind)))

    def snapshot(self, owner: Workload, cluster: Cluster, now: datetime) -> Snapshot:
        """Everything known of one workload."""
        key = owner.metadata.namespace, owner.metadata.name
        natives = self._natives.get(key, {})
        pods = self._pods.get(key, {})
        return Snapshot(
            owner,
            # Items of a list do not say their kind; the informer that brought them knows it.
            tuple(msgspec.structs.replace(natives[each], kind=each[0]) for each in sorted(natives)),
            tuple(pods[each] for each in sorted(pods)),
            cluster,
            now,
        )

    def includes(self, kind: str, revision: int) -> bool:
        """Whether what was written at this revision of a native's kind can be seen by now."""
        return self._informers[kind].revision >= revision

    def _follow(
        self, client: Client, resource: Resource, type_: type[Any], into: defaultdict[Key, Family]
    ) -> Informer[Any]:
        def changed(event: Event[Any]) -> None:
            metadata = event.object.metadata
            key = metadata.namespace, metadata.labels.get(WORKLOAD, "")
            each = resource.kind, metadata.name
            if event.type == DELETED:
                into[key].pop(each, None)
                if not into[key]:
                    del into[key]
            else:
                into[key][each] = event.object
            self._changed(key)

        # Only what carries our label is ever decoded; the rest of the cluster is not our business.
        return Informer(client, resource, type=type_, labels=WORKLOAD, on_change=changed)

    def _owner_changed(self, event: Event[Workload]) -> None:
        owner = event.object
        key = owner.metadata.namespace, owner.metadata.name
        if event.type == DELETED:
            self._owners[key].pop(owner.kind, None)
            if not self._owners[key]:
                del self._owners[key]
        else:
            self._owners[key][owner.kind] = owner
        self._changed(key)

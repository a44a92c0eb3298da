"""The fleet as insight knows it: lists, and what each event of the cluster changes in them.

Watches call it, and it calls nothing but the change stream and the history; so tests drive it with events.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from pincompute.api.history import MAX_LAST_REPLICAS, LastState
from pincompute.api.insight import (
    GONE,
    NODES,
    REPLICAS,
    WORKLOADS,
    Collection,
    GoneItem,
    InsightItem,
    NodeItem,
    ReplicaItem,
    WorkloadItem,
)
from pincompute.api.project import Project
from pincompute.api.workload import Workload
from pincompute.base.clock import Clock
from pincompute.insight.change_stream import ChangeStream
from pincompute.insight.history import History
from pincompute.insight.item_index import ItemIndex, ItemKey, key_of_item
from pincompute.insight.items import Node, node_item, replica_item, workload_item
from pincompute.insight.recorder import (
    Observed,
    deletion_entry,
    node_entries,
    replica_entries,
    revision_changes,
    workload_entries,
)
from pincompute.kube.watch import DELETED, Event
from pincompute.objects.times import format_time
from pincompute.planning.observed_pods import Pod


class Fleet:
    """One task runs the watches; readers need no locks."""

    def __init__(self, cluster: str, stream: ChangeStream, history: History, clock: Clock) -> None:
        self.workloads: ItemIndex[WorkloadItem] = ItemIndex()
        self.replicas: ItemIndex[ReplicaItem] = ItemIndex()
        self.nodes: ItemIndex[NodeItem] = ItemIndex()
        self.stream = stream
        self.history = history
        self._cluster = cluster
        self._clock = clock
        self._changes: dict[str, list[str]] = {}
        """Changes of the last revision, by uid of the workload."""
        self._owners: dict[tuple[str, str], WorkloadItem] = {}
        """Workloads by project and name, which is what the labels of their pods have."""
        self._replica_keys: defaultdict[tuple[str, str], set[ItemKey]] = defaultdict(set)
        self._keys_on_node: defaultdict[str, set[ItemKey]] = defaultdict(set)

    def index_of(self, collection: Collection) -> ItemIndex[Any]:
        indexes: dict[str, ItemIndex[Any]] = {WORKLOADS: self.workloads, REPLICAS: self.replicas, NODES: self.nodes}
        return indexes[collection]

    def replicas_of(self, project: str, workload: str) -> list[ReplicaItem]:
        return [self.replicas.items[key] for key in sorted(self._replica_keys.get((project, workload), ()))]

    def on_workload(self, event: Event[Workload]) -> None:
        workload, item = event.object, workload_item(event.object, self._cluster)
        owner, at = (item.project, item.name), self._now()
        if event.type == DELETED:
            replicas = self.replicas_of(*owner)[:MAX_LAST_REPLICAS]
            state = LastState(
                workload=item, seen_at=at, deleted_at=at, replicas=replicas,
                revision_changes=self._changes.pop(item.uid, []),
            )  # fmt: skip
            self.history.add_entries([deletion_entry(item, at)])
            self.history.remember(state)
            self._owners.pop(owner, None)
            self._discard_item(WORKLOADS, key_of_item(item))
            return
        if event.before and event.before.metadata.generation != workload.metadata.generation:
            self._changes[item.uid] = revision_changes(event.before, workload)[:20]
        known = self.workloads.items.get(key_of_item(item)) or self.history.baseline(item.uid)
        before = known if known and known.uid == item.uid else None
        changes = self._changes.get(item.uid, [])
        self.history.add_entries(workload_entries(before, changes, Observed(workload, item), at))
        self._owners[owner] = item
        if self._store_item(WORKLOADS, item):
            self.history.remember(LastState(workload=item, seen_at=at, revision_changes=changes))

    def on_pod(self, event: Event[Pod]) -> None:
        pod, item = event.object, replica_item(event.object, self._cluster)
        key, owner = key_of_item(item), (item.project, item.workload)
        former = self.replicas.items.get(key)
        if former and former.node:
            self._keys_on_node[former.node].discard(key)
        if event.type == DELETED:
            self._replica_keys[owner].discard(key)
            if not self._replica_keys[owner]:
                del self._replica_keys[owner]
            self._discard_item(REPLICAS, key)
            return
        self._replica_keys[owner].add(key)
        if item.node:
            self._keys_on_node[item.node].add(key)
        self._store_item(REPLICAS, item)
        if workload := self._owners.get(owner):
            self.history.add_entries(replica_entries(event.before, pod, workload, self._now()))

    def on_node(self, event: Event[Node]) -> None:
        item = node_item(event.object, self._cluster)
        if event.type == DELETED:
            self._keys_on_node.pop(item.name, None)
            self._discard_item(NODES, key_of_item(item))
            return
        before = self.nodes.items.get(key_of_item(item))
        if self._store_item(NODES, item) and before:
            self.history.add_entries(node_entries(before, item, self._replicas_on(item.name), self._now()))

    def on_project(self, event: Event[Project]) -> None:
        """A later project of the same name belongs to others, and must not show them the history of the former one."""
        metadata = event.object.metadata
        if event.type == DELETED:
            self.history.forget_project(metadata.name)
        elif event.before is None or event.before.metadata.uid != metadata.uid:
            self.history.forget_project(metadata.name, before=metadata.creation_timestamp)

    def end_missing(self) -> None:
        """Records the deletion of workloads that were known before this process started, and do not exist any more."""
        existing = {each.uid for each in self.workloads.items.values()}
        at = self._now()
        for state in self.history.missing(existing):
            self.history.add_entries([deletion_entry(state.workload, at, "deleted while insight was not running")])
            self.history.remember(state, deleted_at=at)

    def _replicas_on(self, node: str) -> Iterator[tuple[WorkloadItem, ReplicaItem]]:
        for key in self._keys_on_node.get(node, ()):
            replica = self.replicas.items[key]
            if owner := self._owners.get((replica.project, replica.workload)):
                yield owner, replica

    def _store_item(self, collection: Collection, item: InsightItem) -> bool:
        """Stores an item; returns whether it is another one than before."""
        before = self.index_of(collection).store_item(item)
        if before == item:
            return False
        self.stream.send_change(collection, item.project, item)
        return True

    def _discard_item(self, collection: Collection, key: ItemKey) -> None:
        if item := self.index_of(collection).discard_item(key):
            gone = GoneItem(collection=collection, project=item.project, name=item.name, uid=item.uid)
            self.stream.send_change(GONE, item.project, gone)

    def _now(self) -> str:
        return format_time(self._clock.now())

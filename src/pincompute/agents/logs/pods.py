"""Pods known to the log store, with their workloads and the exits of their containers."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from pincompute.api.logs import ContainerExit
from pincompute.api.names import WORKLOAD_LABEL
from pincompute.api.structs import LenientStruct
from pincompute.planning.pods.container_runs import REPLICA_LABELS, LoggedPod, container_runs_of

MAX_DELETED_PODS = 10_000
"""Deleted pods that are remembered, because shippers may still send their last lines."""


class PodRecord(LenientStruct, frozen=True, kw_only=True):
    """Facts about a pod, stored as long as its lines."""

    project: str
    name: str
    uid: str
    workload: str
    main: str = ""
    containers: tuple[str, ...] = ()
    """Names of all its containers; empty in records of earlier releases."""
    namespace_uid: str = ""
    """Uid of its namespace. A project of the same name that is created later has another one."""
    created: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    ends: dict[str, dict[int, ContainerExit]] = msgspec.field(default_factory=dict)
    """Exits by container and restart number."""
    deleted_at: str = msgspec.field(name="gone", default="")


class PodRegistry:
    """Records of existing and recently deleted pods, updated by a watch."""

    def __init__(self) -> None:
        self._existing: dict[str, PodRecord] = {}
        self._deleted: OrderedDict[str, PodRecord] = OrderedDict()

    def get(self, uid: str) -> PodRecord | None:
        return self._existing.get(uid) or self._deleted.get(uid)

    def restore(self, record: PodRecord) -> None:
        """Adds a record that was read from disk."""
        self._existing[record.uid] = record

    def observe(self, pod: LoggedPod, namespace_uid: str = "") -> PodRecord:
        uid = pod.metadata.uid
        before = self._existing.get(uid)
        self._existing[uid] = pod_record(pod, before, namespace_uid)
        return self._existing[uid]

    def forget_namespace(self, namespace_uid: str) -> None:
        """Drops the pods of a deleted namespace: their last lines have no reader."""
        for pods in (self._existing, self._deleted):
            for record in [each for each in pods.values() if each.namespace_uid == namespace_uid]:
                del pods[record.uid]

    def mark_deleted(self, pod: LoggedPod, at: str, namespace_uid: str = "") -> PodRecord:
        record = msgspec.structs.replace(self.observe(pod, namespace_uid), deleted_at=at)
        del self._existing[record.uid]
        self._deleted[record.uid] = record
        while len(self._deleted) > MAX_DELETED_PODS:
            self._deleted.popitem(last=False)
        return record


def pod_record(pod: LoggedPod, before: PodRecord | None, namespace_uid: str = "") -> PodRecord:
    """Record of the pod as it is now, with the container exits of the previous record.

    The first known uid of its namespace stays: a pod never moves to another one.
    """
    metadata = pod.metadata
    ends = {name: dict(each) for name, each in (before.ends if before else {}).items()}
    for container in pod.containers:
        for run in container_runs_of(container):
            if run.end:
                ends.setdefault(container.name, {})[run.restart] = run.end
    return PodRecord(
        project=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        workload=metadata.labels.get(WORKLOAD_LABEL, ""),
        main=next((each.name for each in pod.spec.containers), ""),
        containers=tuple(each.name for each in pod.spec.all_containers),
        namespace_uid=(before.namespace_uid if before else "") or namespace_uid,
        created=str(metadata.creation_timestamp),
        labels={name: metadata.labels[name] for name in REPLICA_LABELS if name in metadata.labels},
        ends=ends,
    )

"""Namespaces of the cluster by uid: the logs of a deleted project do not belong to a new one of the same name."""

from __future__ import annotations

from typing import NamedTuple

from pincompute.agents.logs.pods import PodRecord
from pincompute.api.structs import LenientStruct, Metadata


class Namespace(LenientStruct, frozen=True):
    """The fields of a namespace that identify it."""

    metadata: Metadata


class _Known(NamedTuple):
    uid: str
    created: str


class Namespaces:
    """Namespaces that exist, updated by a watch."""

    def __init__(self) -> None:
        self.watched = False
        """Set once all existing namespaces are known. Until then every pod counts as one of its project."""
        self._known: dict[str, _Known] = {}

    def observe(self, namespace: Namespace) -> str:
        """Adds a namespace. Returns the uid of the deleted one that it replaces, if its deletion was missed."""
        metadata = namespace.metadata
        before = self._known.get(metadata.name)
        self._known[metadata.name] = _Known(metadata.uid, metadata.creation_timestamp)
        return before.uid if before and before.uid != metadata.uid else ""

    def forget(self, namespace: Namespace) -> None:
        metadata = namespace.metadata
        known = self._known.get(metadata.name)
        if known and known.uid == metadata.uid:
            del self._known[metadata.name]

    def uid_of(self, name: str, pod_created: str) -> str:
        """Uid of the namespace of a pod; empty if it is unknown, or younger than the pod."""
        known = self._known.get(name)
        return known.uid if known and pod_created >= known.created else ""

    def owns(self, record: PodRecord) -> bool:
        """Whether the pod belongs to the project that has its name now."""
        if not self.watched:
            return True
        known = self._known.get(record.project)
        if known is None:
            return False
        # Records of earlier releases have no uid. A pod is never older than its namespace.
        return record.namespace_uid == known.uid if record.namespace_uid else record.created >= known.created

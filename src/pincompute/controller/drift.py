"""Detects and reverts drift: edits that another writer made in natives that we own.

The cache keeps no contents of natives, only their metadata and a digest of the server's field ownership record. Drift
is found in two stages, so that a settled cluster costs no request:

1. A native is a *candidate* if the list of foreign writers, or the digest of the fields we own, differs from what it
   was when the native was last inspected.
2. A candidate is read in full and compared with what is wanted. Foreign fields are removed by a JSON patch, changed
   fields are restored by an apply. The new record is remembered, so that each edit is inspected once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from pincompute.api.names import OPERATOR
from pincompute.controller.apply import apply_step
from pincompute.controller.passes import Key
from pincompute.controller.resources import ALL_NATIVES
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.objects.content import Object
from pincompute.objects.field_managers import ForeignEdit, foreign_edits
from pincompute.planning.diff import Difference
from pincompute.planning.snapshot import PLATFORM_FIELD_MANAGERS, Native, NativeMetadata, Snapshot
from pincompute.planning.steps import Adopt, Apply, Create, Delete


class DriftCandidate(NamedTuple):
    """A native that may have been edited, and what it should be."""

    wanted: Object
    uid: str


class DriftResult(NamedTuple):
    """The result of inspecting a candidate."""

    inspected_revision: str = ""
    """The resourceVersion that was compared."""
    edits: tuple[ForeignEdit, ...] = ()
    after: Object | None = None
    """The native after the revert; None if nothing was written."""


class WriterRecord(NamedTuple):
    """A digest of the server's field ownership record of one native."""

    foreign_managers: tuple[str, ...] = ()
    """Field managers other than us and Kubernetes, each with the time of its last write."""
    own_fields_hash: str = ""
    """Digest of the fields that we own."""


class DriftDetector:
    """Remembers the writer record of each native at its last inspection."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: defaultdict[Key, dict[str, WriterRecord]] = defaultdict(dict)
        """By key, then by uid of the native."""

    def candidates(
        self, key: Key, snapshot: Snapshot, wanted: Sequence[Object], difference: Difference
    ) -> Iterator[DriftCandidate]:
        """Natives that match their wanted digest, but with a changed writer record."""
        owner = snapshot.owner.metadata.uid
        present_uids = {each.metadata.uid for each in snapshot.natives}
        known = self._known[key] = {uid: each for uid, each in self._known[key].items() if uid in present_uids}
        changed = {_target_of(step) for step in difference.steps if isinstance(step, Create | Apply | Adopt | Delete)}
        by_name = {(each.kind, each.metadata.name): each for each in snapshot.natives}
        for native in wanted:
            name = (native["kind"], native["metadata"]["name"])
            found = by_name.get(name)
            if (
                found is not None
                and found.metadata.controller_uid == owner
                and name not in changed
                and _has_new_writer_record(found, known)
            ):
                yield DriftCandidate(native, found.metadata.uid)

    async def revert(self, key: Key, candidate: DriftCandidate) -> DriftResult:
        """Reads the native in full and undoes the edits it finds."""
        native, uid = candidate
        resource, metadata = ALL_NATIVES[native["kind"]], native["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace", "")
        try:
            found = await self._client.get(resource, name, namespace)
        except NotFound:
            # The DELETED event is on its way and triggers a pass that creates the native again.
            return DriftResult()
        if found["metadata"]["uid"] != uid:
            return DriftResult()
        edits, after = foreign_edits(found, native, OPERATOR, PLATFORM_FIELD_MANAGERS), None
        added = [each.pointer for each in edits if each.pointer]
        if added:
            after = await self._client.patch(
                resource, name, namespace, _removal_patch(found, added), style="json", manager=OPERATOR
            )
        if len(added) < len(edits):
            after = await apply_step(self._client, namespace, Apply(native, uid))
        self._known[key][uid] = _writer_record(after or found)
        return DriftResult(found["metadata"]["resourceVersion"], tuple(edits), after)

    def note_own_write(self, key: Key, native: Object) -> None:
        """Records our own write, so that it is not taken for drift. Foreign writers still have to be inspected."""
        uid = native["metadata"]["uid"]
        before = self._known[key].get(uid, WriterRecord())
        self._known[key][uid] = before._replace(own_fields_hash=_writer_record(native).own_fields_hash)

    def forget(self, key: Key) -> None:
        self._known.pop(key, None)


def _has_new_writer_record(native: Native, known: dict[str, WriterRecord]) -> bool:
    metadata = native.metadata
    if metadata.uid not in known and not metadata.foreign_managers:
        # First seen, for example after a restart, and nothing foreign in it: its present state is the baseline.
        known[metadata.uid] = WriterRecord(own_fields_hash=metadata.own_fields_hash)
    return known.get(metadata.uid) != WriterRecord(metadata.foreign_managers, metadata.own_fields_hash)


def _writer_record(native: Object) -> WriterRecord:
    metadata = msgspec.convert(native["metadata"], NativeMetadata)
    return WriterRecord(metadata.foreign_managers, metadata.own_fields_hash)


def _target_of(step: Create | Apply | Adopt | Delete) -> tuple[str, str]:
    if isinstance(step, Delete):
        return step.kind, step.name
    return step.native["kind"], step.native["metadata"]["name"]


def _removal_patch(found: Object, pointers: Sequence[str]) -> list[Object]:
    """Removes from the end of each list to its start, so that no removal shifts the index of a later one."""
    version = found["metadata"]["resourceVersion"]
    ordered = sorted(pointers, key=_pointer_sort_key, reverse=True)
    return [
        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
        *({"op": "remove", "path": each} for each in ordered),
    ]


def _pointer_sort_key(pointer: str) -> list[tuple[int, str]]:
    """Orders list indexes as numbers."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in pointer.split("/")]

"""Detects and reverts drift: edits that another writer made in natives that we own.

The cache keeps no contents of natives, only their metadata and a digest of the server's field ownership record. Drift
is found in two stages, so that a settled cluster costs no request:

1. A native is a *candidate* if the list of foreign writers, or the digest of the fields we own, differs from what it
   was when the native was last inspected.
2. A candidate is read in full and compared with what is wanted. If there are foreign fields, the content is restored
   by one JSON patch; an apply restores changed fields and the ownership of all. The new record is remembered, so that
   each edit is inspected once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from pincompute.api.names import OPERATOR
from pincompute.controller.apply import apply_step, restore_content
from pincompute.controller.passes import Key
from pincompute.controller.resources import ALL_NATIVES
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.objects.comparison import field_differences
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

    def forget_absent(self, key: Key, snapshot: Snapshot) -> None:
        """Drops the records of natives that are gone. It precedes the writes of a pass, which the snapshot lacks."""
        present_uids = {each.metadata.uid for each in snapshot.natives}
        self._known[key] = {uid: each for uid, each in self._known[key].items() if uid in present_uids}

    def candidates(
        self, key: Key, snapshot: Snapshot, wanted: Sequence[Object], difference: Difference
    ) -> Iterator[DriftCandidate]:
        """Natives that match their wanted digest, but with a changed writer record."""
        owner, known = snapshot.owner.metadata.uid, self._known[key]
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
        if edits or self._lost_own_fields(key, found):
            if any(each.pointer for each in edits):
                await restore_content(self._client, resource, found, native, edits)
            after = await apply_step(self._client, namespace, Apply(native, uid))
            edits = edits or _restored_fields(found, after)
        now = after or found
        if after is None or not foreign_edits(now, native, OPERATOR, PLATFORM_FIELD_MANAGERS):
            # Another edit may have come in between; the event of our write leads to its inspection.
            self._known[key][uid] = _writer_record(now)
        return DriftResult(found["metadata"]["resourceVersion"], tuple(edits), after)

    def _lost_own_fields(self, key: Key, found: Object) -> bool:
        """Whether our fields differ from those recorded last.

        Kubernetes stores some false and empty values and drops others. Only an apply shows whether one was removed.
        """
        known = self._known[key].get(found["metadata"]["uid"])
        return known is not None and known.own_fields_hash != _writer_record(found).own_fields_hash

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


def _restored_fields(found: Object, after: Object | None) -> list[ForeignEdit]:
    """Fields that an apply has changed. Their editor is unknown."""
    return [ForeignEdit(each.path, each.before, each.after, "") for each in field_differences(found, after or found)]


def _target_of(step: Create | Apply | Adopt | Delete) -> tuple[str, str]:
    if isinstance(step, Delete):
        return step.kind, step.name
    return step.native["kind"], step.native["metadata"]["name"]

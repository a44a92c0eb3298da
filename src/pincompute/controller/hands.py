"""Hands that reach into what is ours: what somebody edited in a native is found, put back, and told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from pincompute.api.names import OPERATOR
from pincompute.controller.act import act
from pincompute.controller.passes import Key
from pincompute.controller.resources import BECOME
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.objects.content import Object
from pincompute.objects.managers import Edit, edits
from pincompute.planning.diff import Difference
from pincompute.planning.snapshot import FRIENDS, Native, NativeMetadata, Snapshot
from pincompute.planning.steps import Adopt, Apply, Create, Delete


class Suspect(NamedTuple):
    """A native that somebody may have edited."""

    wanted: Object
    uid: str


class Looked(NamedTuple):
    found: str = ""
    """The revision at which it was looked at."""
    edited: tuple[Edit, ...] = ()
    after: Object | None = None
    """As it is now, where anything was put back."""


class Record(NamedTuple):
    strangers: tuple[str, ...] = ()
    """Who else has written into it, and when last."""
    ours: str = ""
    """A digest of what we are on record for."""


class Hands:
    """Remembers who has written into which native, so that each is looked at once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: defaultdict[Key, dict[str, Record]] = defaultdict(dict)
        """Of each native, by uid, as it was when all was well."""

    def suspects(
        self, key: Key, snapshot: Snapshot, wanted: Sequence[Object], difference: Difference
    ) -> Iterator[Suspect]:
        """Those that are as we wrote them, and that somebody has touched since. A settled world has none."""
        owner = snapshot.owner.metadata.uid
        there = {each.metadata.uid for each in snapshot.natives}
        known = self._known[key] = {uid: each for uid, each in self._known[key].items() if uid in there}
        changed = {_name(step) for step in difference.steps if isinstance(step, Create | Apply | Adopt | Delete)}
        seen = {(each.kind, each.metadata.name): each for each in snapshot.natives}
        for native in wanted:
            name = (native["kind"], native["metadata"]["name"])
            found = seen.get(name)
            if (
                found is not None
                and found.metadata.controller == owner
                and name not in changed
                and _is_news(found, known)
            ):
                yield Suspect(native, found.metadata.uid)

    async def put_back(self, key: Key, suspect: Suspect) -> Looked:
        """Looked at whole, and made as before where somebody has edited it."""
        native, uid = suspect
        resource, metadata = BECOME[native["kind"]], native["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace", "")
        try:
            found = await self._client.get(resource, name, namespace)
        except NotFound:
            # The event that tells so is on its way.
            return Looked()
        if found["metadata"]["uid"] != uid:
            return Looked()
        edited, after = edits(found, native, OPERATOR, FRIENDS), None
        added = [each.pointer for each in edited if each.pointer]
        if added:
            after = await self._client.patch(
                resource, name, namespace, _removal(found, added), style="json", manager=OPERATOR
            )
        if len(added) < len(edited):
            after = await act(self._client, namespace, Apply(native, uid))
        self._known[key][uid] = _record(after or found)
        return Looked(found["metadata"]["resourceVersion"], tuple(edited), after)

    def wrote(self, key: Key, native: Object) -> None:
        """By a step of ours; whom it has not looked at yet it will still look at."""
        uid = native["metadata"]["uid"]
        before = self._known[key].get(uid, Record())
        self._known[key][uid] = before._replace(ours=_record(native).ours)

    def forget(self, key: Key) -> None:
        self._known.pop(key, None)


def _is_news(native: Native, known: dict[str, Record]) -> bool:
    metadata = native.metadata
    if metadata.uid not in known and not metadata.strangers:
        # First seen, and nobody else's hand is on it: as it is now, it is ours.
        known[metadata.uid] = Record(ours=metadata.record)
    return known.get(metadata.uid) != Record(metadata.strangers, metadata.record)


def _record(native: Object) -> Record:
    metadata = msgspec.convert(native["metadata"], NativeMetadata)
    return Record(metadata.strangers, metadata.record)


def _name(step: Create | Apply | Adopt | Delete) -> tuple[str, str]:
    if isinstance(step, Delete):
        return step.kind, step.name
    return step.native["kind"], step.native["metadata"]["name"]


def _removal(found: Object, pointers: Sequence[str]) -> list[Object]:
    """From the last entry of each list to the first, so that no removal moves what the next one means."""
    version = found["metadata"]["resourceVersion"]
    ordered = sorted(pointers, key=_place, reverse=True)
    return [
        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
        *({"op": "remove", "path": each} for each in ordered),
    ]


def _place(pointer: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (0, part) for part in pointer.split("/")]

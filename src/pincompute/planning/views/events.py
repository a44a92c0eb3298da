"""Kubernetes events of a workload and its objects, with equal events of many objects folded into one line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from pincompute.api.structs import LenientStruct, Metadata
from pincompute.api.workload_detail import EventDetail
from pincompute.planning.diagnosis.excerpts import excerpt_start

MAX_EVENTS = 20
"""Folded lines that are shown, the newest."""


class Regarding(LenientStruct, frozen=True):
    kind: str = ""
    name: str = ""
    uid: str = ""


class Series(LenientStruct, frozen=True):
    count: int = 0
    last_observed_time: str = ""


class Event(LenientStruct, frozen=True):
    """The fields of an event that users read. Older components still set the deprecated ones."""

    metadata: Metadata
    type: str = "Normal"
    reason: str = ""
    note: str = ""
    regarding: Regarding = Regarding()
    series: Series | None = None
    event_time: str | None = None
    deprecated_count: int = 0
    deprecated_last_timestamp: str | None = None

    @property
    def occurrences(self) -> int:
        return max(1, self.series.count if self.series else self.deprecated_count)

    @property
    def last_seen(self) -> str:
        in_series = self.series.last_observed_time if self.series else ""
        return in_series or self.deprecated_last_timestamp or self.event_time or self.metadata.creation_timestamp


class EventScope(NamedTuple):
    """The objects of a workload. Deleted pods are recognized by their names, since their uids are not known."""

    uids: frozenset[str]
    name_prefixes: frozenset[str]
    """Names of the objects that create pods; the names of their pods begin with them."""

    def includes(self, event: Event) -> bool:
        regarding = event.regarding
        if regarding.uid in self.uids:
            return True
        return regarding.kind in {"Pod", "ReplicaSet"} and any(
            re.fullmatch(re.escape(prefix) + _GENERATED_SUFFIX, regarding.name) for prefix in self.name_prefixes
        )


_GENERATED_SUFFIX = r"(-\d+)?((-[bcdfghjklmnpqrstvwxz2456789]{6,10})?(-[bcdfghjklmnpqrstvwxz2456789]{5})?)"
"""An ordinal, and the suffixes that Kubernetes generates. They have no vowels, so that workload `web` does not match
the objects of `web-two`."""


def fold_events(events: Iterable[Event]) -> list[EventDetail]:
    """One line for all events of the same kind of object, type, reason and message; the newest last."""
    groups: dict[tuple[str, str, str, str], list[Event]] = {}
    for event in sorted(events, key=lambda each: (each.last_seen, each.metadata.name)):
        key = (event.regarding.kind, event.type, event.reason, _generic_note(event.note))
        groups.setdefault(key, []).append(event)
    lines = [_event_line(*key, group) for key, group in groups.items()]
    return sorted(lines, key=lambda each: (each.last_seen, each.involved_object, each.reason))[-MAX_EVENTS:]


def _event_line(kind: str, type_: str, reason: str, generic_note: str, group: list[Event]) -> EventDetail:
    names = {each.regarding.name for each in group}
    is_single = len(names) == 1
    return EventDetail(
        involved_object=f"{kind}/{group[-1].regarding.name}" if is_single else f"{len(names)} {kind}s",
        warning=type_ != "Normal",
        reason=reason,
        note=excerpt_start(group[-1].note if is_single else generic_note),
        count=sum(each.occurrences for each in group),
        last_seen=group[-1].last_seen,
    )


def _generic_note(note: str) -> str:
    """The message without the parts that differ between pods: uids, IP addresses and pod names."""
    note = re.sub(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}\b", "…", note)
    note = re.sub(r"\b\d+\.\d+\.\d+\.\d+(:\d+)?\b", "…", note)
    note = re.sub(r"(-\d+)*(-[bcdfghjklmnpqrstvwxz2456789]{6,10})?-[bcdfghjklmnpqrstvwxz2456789]{5}\b", "-…", note)
    return re.sub(r"(?<=assigned )\S+ to \S+", "…", note)

"""What Kubernetes said of a workload and of all that it became, folded: once for many, with how often."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from pincompute.api.account import EventAccount
from pincompute.api.wire import Metadata, Wire
from pincompute.planning.why.words import beginning

MOST = 20
"""Lines that are told: the newest."""


class Regarding(Wire, frozen=True):
    kind: str = ""
    name: str = ""
    uid: str = ""


class Series(Wire, frozen=True):
    count: int = 0
    last_observed_time: str = ""


class Event(Wire, frozen=True):
    """The few fields that say something to a person; older senders use other ones."""

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
    def times(self) -> int:
        return max(1, self.series.count if self.series else self.deprecated_count)

    @property
    def last(self) -> str:
        said = self.series.last_observed_time if self.series else ""
        return said or self.deprecated_last_timestamp or self.event_time or self.metadata.creation_timestamp


class Family(NamedTuple):
    """The objects that belong to a workload, those that are gone included as far as their names tell."""

    uids: frozenset[str]
    names: frozenset[str]
    """Of whatever makes pods: their names begin so."""

    def has(self, event: Event) -> bool:
        regarding = event.regarding
        if regarding.uid in self.uids:
            return True
        return regarding.kind in {"Pod", "ReplicaSet"} and any(
            re.fullmatch(re.escape(each) + _HASHES, regarding.name) for each in self.names
        )


_HASHES = r"(-\d+)?((-[bcdfghjklmnpqrstvwxz2456789]{6,10})?(-[bcdfghjklmnpqrstvwxz2456789]{5})?)"
"""A number, and what Kubernetes appends: letters that spell no word, so that `web` never takes what is of `web-two`."""


def folded(events: Iterable[Event]) -> list[EventAccount]:
    """The newest last."""
    alike: dict[tuple[str, str, str, str], list[Event]] = {}
    for each in sorted(events, key=lambda each: (each.last, each.metadata.name)):
        alike.setdefault((each.regarding.kind, each.type, each.reason, _plain(each.note)), []).append(each)
    told = [_told(*key, each) for key, each in alike.items()]
    return sorted(told, key=lambda each: (each.last, each.about, each.reason))[-MOST:]


def _told(kind: str, type_: str, reason: str, plain: str, alike: list[Event]) -> EventAccount:
    names = {each.regarding.name for each in alike}
    one = len(names) == 1
    return EventAccount(
        about=f"{kind}/{alike[-1].regarding.name}" if one else f"{len(names)} {kind}s",
        warning=type_ != "Normal",
        reason=reason,
        note=beginning(alike[-1].note if one else plain),
        count=sum(each.times for each in alike),
        last=alike[-1].last,
    )


def _plain(note: str) -> str:
    """Without what is never the same twice: addresses, uids and the names of pods."""
    note = re.sub(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}\b", "…", note)
    note = re.sub(r"\b\d+\.\d+\.\d+\.\d+(:\d+)?\b", "…", note)
    note = re.sub(r"(-\d+)*(-[bcdfghjklmnpqrstvwxz2456789]{6,10})?-[bcdfghjklmnpqrstvwxz2456789]{5}\b", "-…", note)
    return re.sub(r"(?<=assigned )\S+ to \S+", "…", note)

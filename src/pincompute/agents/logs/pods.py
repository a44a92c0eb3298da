"""The pods that the store knows: whose they are, and how their containers ended."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from pincompute.api.logs import End
from pincompute.api.names import WORKLOAD
from pincompute.api.wire import Wire
from pincompute.planning.pods.lives import TELLING, Pod, lives_of

REMEMBERED = 10_000
"""Pods that are gone, of which lines may still be on their way."""


class Known(Wire, frozen=True, kw_only=True):
    """What is remembered of a pod for as long as its lines are kept."""

    project: str
    name: str
    uid: str
    workload: str
    main: str = ""
    created: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    ends: dict[str, dict[int, End]] = msgspec.field(default_factory=dict)
    """Of each container, by the number of the life that ended."""
    gone: str = ""


class Pods:
    """Kept by a watch; what a pod was outlives it here for as long as anybody may still ask."""

    def __init__(self) -> None:
        self._there: dict[str, Known] = {}
        self._gone: OrderedDict[str, Known] = OrderedDict()

    def get(self, uid: str) -> Known | None:
        return self._there.get(uid) or self._gone.get(uid)

    def remember(self, known: Known) -> None:
        """By what was on disk."""
        self._there[known.uid] = known

    def see(self, pod: Pod) -> Known:
        uid = pod.metadata.uid
        before = self._there.get(uid)
        self._there[uid] = known_of(pod, before)
        return self._there[uid]

    def forget(self, pod: Pod, at: str) -> Known:
        last = msgspec.structs.replace(self.see(pod), gone=at)
        del self._there[last.uid]
        self._gone[last.uid] = last
        while len(self._gone) > REMEMBERED:
            self._gone.popitem(last=False)
        return last


def known_of(pod: Pod, before: Known | None) -> Known:
    """As it is seen now, with the ends that were seen before."""
    metadata = pod.metadata
    ends = {name: dict(each) for name, each in (before.ends if before else {}).items()}
    for each in pod.containers:
        for life in lives_of(each):
            if life.end:
                ends.setdefault(each.name, {})[life.restart] = life.end
    return Known(
        project=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        workload=metadata.labels.get(WORKLOAD, ""),
        main=next((each.name for each in pod.spec.containers), ""),
        created=str(metadata.creation_timestamp),
        labels={name: metadata.labels[name] for name in TELLING if name in metadata.labels},
        ends=ends,
    )

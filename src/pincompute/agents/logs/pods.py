"""The pods that the store knows: whose they are, and how their containers ended."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from pincompute.api.logs import End
from pincompute.api.names import ATTEMPT, WORKLOAD
from pincompute.api.wire import Wire
from pincompute.planning.snapshot import Container, OwnedMetadata, PodStatus, Terminated

REMEMBERED = 10_000
"""Pods that are gone, of which lines may still be on their way."""
JOB_INDEX = "batch.kubernetes.io/job-completion-index"
JOB_NAME = "batch.kubernetes.io/job-name"
TEMPLATE_HASH = "pod-template-hash"
_TELLING = (ATTEMPT, JOB_INDEX, JOB_NAME, TEMPLATE_HASH)


class Named(Wire, frozen=True):
    name: str


class Containers(Wire, frozen=True):
    containers: list[Named] = msgspec.field(default_factory=list)


class Pod(Wire, frozen=True):
    """The fields of a pod that the store goes by."""

    metadata: OwnedMetadata
    spec: Containers = Containers()
    status: PodStatus = PodStatus()


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
    for each in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        for restart, ended in _ends(each):
            ends.setdefault(each.name, {})[restart] = End(ended.reason, ended.exit_code, ended.finished_at)
    return Known(
        project=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        workload=metadata.labels.get(WORKLOAD, ""),
        main=next((each.name for each in pod.spec.containers), ""),
        created=str(metadata.creation_timestamp),
        labels={name: metadata.labels[name] for name in _TELLING if name in metadata.labels},
        ends=ends,
    )


def _ends(container: Container) -> list[tuple[int, Terminated]]:
    """Of the present life, and of the one before: while it waits to begin again, the number is still the old one."""
    number, state, last = container.restart_count, container.state, container.last_state.terminated
    found = [(number, state.terminated)] if state.terminated else []
    if last:
        found.append((number if state.waiting else number - 1, last))
    return found

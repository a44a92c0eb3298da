"""Decides which changes of objects become entries of the history. Pure: a function of the object before and after.

Entries have keys, so that an object that is observed again after a restart adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

import msgspec

from pincompute.api.history import MAX_TEXT_CHARS, HistoryEntry, LaunchPhases
from pincompute.api.insight import NodeItem, ReplicaItem, WorkloadItem
from pincompute.api.names import SUBMISSION_ANNOTATION
from pincompute.api.structs import without_defaults
from pincompute.api.workload import Workload
from pincompute.objects.times import format_time
from pincompute.planning.observed_pods import Pod, PodCondition
from pincompute.planning.views.history import describe_changes

DISRUPTED = "DisruptionTarget"
"""Condition of a pod that is evicted, preempted, or ended because its node is gone."""


class KeyedEntry(NamedTuple):
    key: str
    """Equal for what happened once; it is stored once."""
    entry: HistoryEntry


class Observed(NamedTuple):
    """A workload as it is observed, with its item."""

    workload: Workload
    item: WorkloadItem


def workload_entries(
    before: WorkloadItem | None, changes: Iterable[str], now: Observed, at: str
) -> Iterator[KeyedEntry]:
    """Entries of a workload that was observed. `before` is its last known item, if it is the same object."""
    workload, item = now
    base = _entry_of(item, at)
    submission = workload.metadata.annotations.get(SUBMISSION_ANNOTATION, "")
    if before is None:
        yield KeyedEntry(
            f"created:{item.uid}",
            msgspec.structs.replace(
                base, event="created", at=item.created_at or at, message=item.image, submission=submission
            ),
        )
    elif before.generation != item.generation:
        text = shortened("; ".join(changes))
        yield KeyedEntry(
            f"changed:{item.uid}:{item.generation}",
            msgspec.structs.replace(base, event="changed", message=text, submission=submission),
        )
    if before is None or _state(before) != _state(item):
        yield KeyedEntry(
            f"state:{item.uid}:{item.generation}:{item.revision}:{item.attempt}:{item.reason}:{at}",
            msgspec.structs.replace(base, event="state", reason=item.reason, message=shortened(item.message)),
        )


def deletion_entry(item: WorkloadItem, at: str, note: str = "") -> KeyedEntry:
    entry = msgspec.structs.replace(_entry_of(item, at), event="deleted", reason=item.reason, message=note)
    return KeyedEntry(f"deleted:{item.uid}", entry)


def revision_changes(before: Workload, after: Workload) -> list[str]:
    """The changed fields of the spec, without values that look like secrets."""
    return list(describe_changes(type(after), without_defaults(before.spec), without_defaults(after.spec)))


def replica_entries(before: Pod | None, after: Pod, owner: WorkloadItem, at: str) -> Iterator[KeyedEntry]:
    """Entries of a pod that was observed."""
    uid = after.metadata.uid
    base = msgspec.structs.replace(
        _entry_of(owner, at), replica=after.metadata.name, node=after.spec.node_name, revision=0
    )
    ready_at = _time_of(after, "Ready")
    if ready_at and not (before and _time_of(before, "Ready")):
        entry = msgspec.structs.replace(base, event="launch", at=format_time(ready_at), launch=launch_phases(after))
        yield KeyedEntry(f"launch:{uid}", entry)
    known = {each.name: each.restart_count for each in before.status.container_statuses} if before else {}
    for container in after.status.container_statuses:
        ended = container.last_state.terminated
        # Before the first observation it is unknown when earlier restarts were.
        if container.restart_count > known.get(container.name, container.restart_count):
            why = f"{container.name} exited with code {ended.exit_code}" if ended else f"{container.name} restarted"
            entry = msgspec.structs.replace(base, event="restart", reason=ended.reason if ended else "", message=why)
            yield KeyedEntry(f"restart:{uid}:{container.name}:{container.restart_count}", entry)
    if (disrupted := _disruption_of(after)) and not (before and _disruption_of(before)):
        yield KeyedEntry(f"evicted:{uid}", _condition_entry(base, disrupted))
    elif not disrupted and after.status.phase == "Failed" and not (before and before.status.phase == "Failed"):
        reason = after.status.reason or _exit_text(after)
        entry = msgspec.structs.replace(
            base, event="failed", reason=after.status.reason, message=shortened(after.status.message or reason)
        )
        yield KeyedEntry(f"failed:{uid}", entry)


def node_entries(
    before: NodeItem, after: NodeItem, replicas: Iterable[tuple[WorkloadItem, ReplicaItem]], at: str
) -> Iterator[KeyedEntry]:
    """Entries of the workloads with replicas on a node that became unready or ready, or was cordoned."""
    if (before.ready, before.schedulable) == (after.ready, after.schedulable):
        return
    if before.ready != after.ready:
        text = "node is ready again" if after.ready else "node is not ready"
    else:
        text = "node accepts pods again" if after.schedulable else "node was cordoned"
    named: dict[str, tuple[WorkloadItem, list[str]]] = {}
    for owner, replica in replicas:
        named.setdefault(owner.uid, (owner, []))[1].append(replica.name)
    for uid, (owner, names) in named.items():
        entry = msgspec.structs.replace(
            _entry_of(owner, at), event="node", node=after.name, reason=after.reason,
            message=shortened(f"{text}; replicas there: {', '.join(sorted(names))}"),
        )  # fmt: skip
        yield KeyedEntry(f"node:{uid}:{after.name}:{text}:{at}", entry)


def launch_phases(pod: Pod) -> LaunchPhases:
    created = pod.metadata.creation_timestamp
    if not created:
        return LaunchPhases()
    start = datetime.fromisoformat(created)
    runs = [each.state.running.started_at for each in pod.status.container_statuses if each.state.running]

    def seconds(moment: datetime | None) -> int | None:
        return None if moment is None else max(0, round((moment - start).total_seconds()))

    return LaunchPhases(
        scheduled_s=seconds(_time_of(pod, "PodScheduled")),
        sandbox_s=seconds(_time_of(pod, "PodReadyToStartContainers")),
        started_s=seconds(max(runs) if runs else None),
        ready_s=seconds(_time_of(pod, "Ready")),
    )


def shortened(text: str) -> str:
    return text if len(text) <= MAX_TEXT_CHARS else f"{text[: MAX_TEXT_CHARS - 1]}…"


def _entry_of(item: WorkloadItem, at: str) -> HistoryEntry:
    return HistoryEntry(
        number=0, at=at, event="state", project=item.project, workload=item.name, uid=item.uid, kind=item.kind,
        cluster=item.cluster, revision=item.revision,
    )  # fmt: skip


def _condition_entry(base: HistoryEntry, condition: PodCondition) -> HistoryEntry:
    at = format_time(condition.last_transition_time) if condition.last_transition_time else base.at
    return msgspec.structs.replace(
        base, event="evicted", at=at, reason=condition.reason, message=shortened(condition.message)
    )


def _state(item: WorkloadItem) -> tuple[object, ...]:
    return item.reason, item.done, item.failed, item.revision, item.attempt


def _time_of(pod: Pod, condition: str) -> datetime | None:
    found = (each for each in pod.status.conditions if each.type == condition and each.status == "True")
    return next((each.last_transition_time for each in found), None)


def _disruption_of(pod: Pod) -> PodCondition | None:
    found = (each for each in pod.status.conditions if each.type == DISRUPTED and each.status == "True")
    return next(found, None)


def _exit_text(pod: Pod) -> str:
    ends = [(each.name, each.state.terminated) for each in pod.status.container_statuses]
    return ", ".join(f"{name} exited with code {end.exit_code}" for name, end in ends if end and end.exit_code)

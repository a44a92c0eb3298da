"""Notes beside the answer of `pin why`: reverted edits, an emergency override, the end of a workload's life."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pincompute.api.daemon import PinterestDaemon
from pincompute.api.status import EXPIRES_SOON, HOST_UNLISTED, UNREVIEWED, WorkloadStatus, find_condition
from pincompute.api.workload import Workload
from pincompute.base.reasons import BREAK_GLASS_ACTIVE
from pincompute.planning.diagnosis.excerpts import join_with_and
from pincompute.planning.notable_events import DRIFT_REVERTED
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.views.events import Event

REPEATED_EDITS = 3
"""Reverted edits within that time after which they are reported as repeated."""
DRIFT_NOTE_WINDOW_S = 600.0
"""Time for which a reverted manual edit is mentioned."""


def collect_notes(snapshot: Snapshot, status: object, events: Sequence[Event]) -> list[str]:
    """The notes that apply. `status` is the planned one, `events` are those of the workload."""
    found = (
        _drift_note(snapshot, events),
        _unreviewed_note(status),
        _host_note(snapshot.owner),
        _expiry_note(status),
        _daemon_note(snapshot),
    )
    return [each for each in found if each]


def _drift_note(snapshot: Snapshot, events: Sequence[Event]) -> str:
    """A recently reverted manual edit, as its author wonders where it went; or that edits are made again and again."""
    recent = (
        each
        for each in events
        if each.reason == DRIFT_REVERTED and each.last_seen and _is_recent(snapshot, each.last_seen)
    )
    reverted = sorted(recent, key=lambda each: (each.last_seen, each.metadata.name))
    count = sum(each.occurrences for each in reverted)
    if count < REPEATED_EDITS:
        return reverted[-1].note if reverted else ""
    since = reverted[0].event_time or reverted[0].metadata.creation_timestamp or reverted[0].last_seen
    return (
        f"edited and reverted {count} times since {since}, and the workload changes with every edit; "
        f"the last: {reverted[-1].note}"
    )


def _unreviewed_note(status: object) -> str:
    """An active emergency override. It is a note, not a problem, until it expires."""
    condition = find_condition(status.conditions, UNREVIEWED) if isinstance(status, WorkloadStatus) else None
    return condition.message if condition and condition.reason == BREAK_GLASS_ACTIVE.code else ""


def _expiry_note(status: object) -> str:
    """A life that ends soon."""
    condition = find_condition(status.conditions, EXPIRES_SOON) if isinstance(status, WorkloadStatus) else None
    return condition.message if condition else ""


def _host_note(owner: Workload) -> str:
    """A host that the project was not given. The status has it, because it depends on the workloads of all projects."""
    condition = find_condition(owner.status.conditions, HOST_UNLISTED)
    return condition.message if condition else ""


def _is_recent(snapshot: Snapshot, moment: str) -> bool:
    return (snapshot.now - datetime.fromisoformat(moment)).total_seconds() < DRIFT_NOTE_WINDOW_S


def _daemon_note(snapshot: Snapshot) -> str:
    """A daemon that runs on no node, which its status counts as complete: nodes of that type may come later."""
    owner, daemon_set = snapshot.owner, snapshot.owned_native("DaemonSet")
    if not isinstance(owner, PinterestDaemon) or daemon_set is None or not daemon_set.generation_observed:
        return ""
    if daemon_set.status.desired_number_scheduled:
        return ""
    selector = owner.spec.template.get("spec", {}).get("nodeSelector", {})
    if not selector:
        return "no node accepts it: there is none, or its affinity and tolerations in the file match none"
    labels = join_with_and(f"{key}={value}" for key, value in sorted(selector.items()))
    return f"no node has {labels}, which nodeSelector in the file requires"

"""Kubernetes Events about a workload: problems of its status that come and go, and manual edits that were reverted.

What goes as planned makes no event: the conditions and the revision in the status say it.

A transition is found by comparing the new status with the previous one, which is in the resource itself. The names of
events are derived from their content, so that a pass which is repeated after a crash does not write a second event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pincompute.api.status import EXPIRED, EXPIRES_SOON, READY, UNREVIEWED, Condition, ResourceStatus, find_condition
from pincompute.base.reasons import find_reason
from pincompute.objects.content import content_hash, object_label
from pincompute.objects.field_managers import ForeignEdit

RECOVERED, DRIFT_REVERTED, REVIEWED = "Recovered", "DriftReverted", "Reviewed"


class EventMessage(NamedTuple):
    """An event to write."""

    reason: str
    action: str
    note: str
    name: str
    """Name of the Event object, equal for equal content: the API server rejects the duplicate."""
    warning: bool = False


def status_events(owner: Any, after: ResourceStatus) -> Iterator[EventMessage]:
    """Events for the transition from the status in `owner` to the new one."""
    before: ResourceStatus = owner.status
    type_ = getattr(owner, "GOAL", READY)
    was, now = find_condition(before.conditions, type_), find_condition(after.conditions, type_)
    yield from _review_events(owner, before, after)
    yield from _expiry_events(owner, before, after)
    if now is None or (was and (was.status, was.reason) == (now.status, now.reason)):
        return
    name = _event_name(
        owner,
        owner.metadata.uid,
        after.observed_generation,
        was.last_transition_time if was else "",
        was.reason if was else "",
        now.reason,
    )
    if _is_failing(now):
        yield EventMessage(now.reason, "Reconcile", now.message, name, warning=True)
    elif was and _is_failing(was):
        yield EventMessage(RECOVERED, "Reconcile", f"recovered from {was.reason}: {now.message}", name)


def _review_events(owner: Any, before: ResourceStatus, after: ResourceStatus) -> Iterator[EventMessage]:
    """Events for an emergency override that becomes active, expires, or ends with a reviewed build."""
    was, now = find_condition(before.conditions, UNREVIEWED), find_condition(after.conditions, UNREVIEWED)
    if now and (was is None or (was.reason, was.message) != (now.reason, now.message)):
        name = _event_name(owner, owner.metadata.uid, now.reason, now.message)
        yield EventMessage(now.reason, "Review", now.message, name, warning=True)
    elif was and now is None:
        name = _event_name(owner, owner.metadata.uid, REVIEWED, was.message)
        yield EventMessage(REVIEWED, "Review", f"{owner.metadata.name} runs a reviewed revision again", name)


def _expiry_events(owner: Any, before: ResourceStatus, after: ResourceStatus) -> Iterator[EventMessage]:
    """Events for the end of a life: when it is near, and when it has come."""
    for type_ in (EXPIRES_SOON, EXPIRED):
        now = find_condition(after.conditions, type_)
        if now and find_condition(before.conditions, type_) is None:
            name = _event_name(owner, owner.metadata.uid, now.reason, now.last_transition_time)
            yield EventMessage(now.reason, "Expire", now.message, name, warning=True)


def drift_event(owner: Any, native: dict[str, Any], found: str, edited: Sequence[ForeignEdit]) -> EventMessage:
    """The event about reverted manual edits. `found` is the resource version at which they were found."""
    label = object_label(native)
    note = f"manual edit of {label} reverted: {'; '.join(_edit_text(each) for each in edited)}"
    name = _event_name(owner, owner.metadata.uid, label, found)
    return EventMessage(DRIFT_REVERTED, "RevertDrift", note, name, warning=True)


def _edit_text(edit: ForeignEdit) -> str:
    """The edited field. Values are included only for numbers and images: other text may be a secret."""
    by = f" by {edit.manager}" if edit.manager else ""
    if edit.before is None:
        return f"{edit.path} was removed{by}"
    if edit.pointer:
        return f"{edit.path} was added{by}"
    if isinstance(edit.before, int) or edit.path.endswith(".image"):
        return f"{edit.path} was set to {edit.before} instead of {edit.wanted}{by}"
    return f"{edit.path} was changed{by}"


def _is_failing(condition: Condition) -> bool:
    reason = find_reason(condition.reason)
    return condition.status != "True" and (reason is None or reason.is_problem)


def _event_name(owner: Any, *parts: object) -> str:
    return f"{owner.metadata.name}.{content_hash(parts)}"

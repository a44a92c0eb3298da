"""What is worth an Event: what a status says that the one before did not, and whose edit was put back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pincompute.api.status import READY, UNREVIEWED, Condition, Report, condition
from pincompute.base.reasons import REASONS
from pincompute.objects.content import digest, identity
from pincompute.objects.managers import Edit

BEGAN, RECOVERED, PUT_BACK, REVIEWED = "RolloutBegan", "Recovered", "PutBack", "Reviewed"


class News(NamedTuple):
    """One thing that a person would want to know."""

    reason: str
    action: str
    note: str
    name: str
    """The same however often it is told, so that it is told once."""
    warning: bool = False


def news(owner: Any, after: Report) -> Iterator[News]:
    """By what the status said before: nothing is remembered."""
    before: Report = owner.status
    type_ = getattr(owner, "GOAL", READY)
    was, now = condition(before.conditions, type_), condition(after.conditions, type_)
    uid, generation = owner.metadata.uid, after.observed_generation
    if generation > before.observed_generation:
        note = f"{owner.metadata.name}@{generation} is being made so"
        yield News(BEGAN, "RollOut", note, _name(owner, uid, BEGAN, generation))
    yield from _glass(owner, before, after)
    if now is None or (was and _same(was, now)):
        return
    stable = _name(
        owner, uid, generation, was.last_transition_time if was else "", was.reason if was else "", now.reason
    )
    if _ails(now):
        yield News(now.reason, "Reconcile", now.message, stable, warning=True)
    elif was and _ails(was):
        yield News(RECOVERED, "Reconcile", f"{was.reason} is over: {now.message}", stable)
    elif now.status == "True":
        yield News(now.reason, "RollOut", f"{owner.metadata.name}@{generation}: {now.message}", stable)


def _glass(owner: Any, before: Report, after: Report) -> Iterator[News]:
    """That nobody has reviewed what runs, that this lasts too long, and that it is over."""
    was, now = condition(before.conditions, UNREVIEWED), condition(after.conditions, UNREVIEWED)
    if now and (was is None or (was.reason, was.message) != (now.reason, now.message)):
        name = _name(owner, owner.metadata.uid, now.reason, now.message)
        yield News(now.reason, "Review", now.message, name, warning=True)
    elif was and now is None:
        name = _name(owner, owner.metadata.uid, REVIEWED, was.message)
        yield News(REVIEWED, "Review", f"{owner.metadata.name} is as it was reviewed again", name)


def put_back(owner: Any, native: dict[str, Any], found: str, edited: Sequence[Edit]) -> News:
    """`found` is the revision at which the edits were seen."""
    told = "; ".join(_edit(each) for each in edited)
    name = _name(owner, owner.metadata.uid, identity(native), found)
    return News(
        PUT_BACK, "PutBack", f"{identity(native)} was edited by hand and is as before: {told}", name, warning=True
    )


def _edit(edit: Edit) -> str:
    by = f" by {edit.manager}" if edit.manager else ""
    if edit.before is None:
        return f"{edit.path} was removed{by}"
    if edit.pointer:
        return f"{edit.path} was added{by}"
    if isinstance(edit.before, int) or edit.path.endswith(".image"):
        return f"{edit.path} was set to {edit.before} instead of {edit.wanted}{by}"
    # Other words may be secrets.
    return f"{edit.path} was changed{by}"


def _same(was: Condition, now: Condition) -> bool:
    return (was.status, was.reason) == (now.status, now.reason)


def _ails(said: Condition) -> bool:
    known = REASONS.get(said.reason)
    return said.status != "True" and (known is None or known.http != 200)


def _name(owner: Any, *parts: object) -> str:
    return f"{owner.metadata.name}.{digest(parts)}"

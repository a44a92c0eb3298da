"""Accept: one transaction decides, and writes down all that follows from it, or nothing at all."""

from __future__ import annotations

from typing import NamedTuple

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import KEY_REUSED
from pincompute.planning.quotas import allowance
from pincompute.planning.quotas.allowance import Asked
from pincompute.planning.quotas.footprint import Place
from pincompute.submission import ledger, outbox, record
from pincompute.submission.database import Connection
from pincompute.submission.outbox import Parcel
from pincompute.submission.platform import Rendered
from pincompute.submission.record import Decision, Judge, Kept, Submission, Vouched


def accept(connection: Connection, submission: Submission, rendered: Rendered, vouched: Vouched | None = None) -> Kept:
    """What is decided now; or what was, when this was submitted before."""
    ledger.lock(connection, submission.cluster, submission.place.project)
    if before := known(connection, submission):
        return before
    if refused := fits(connection, submission.cluster, rendered).refused:
        return _decided(connection, submission, Decision.refused(Judge.DESK, submission.at, refused))
    kept = _decided(connection, submission, Decision(Judge.DESK, submission.at, accepted=True, rule="", words=""))
    if rendered.whole is not None:
        record.revise(connection, submission, rendered.whole)
    if vouched is not None:
        record.vouch(connection, submission, vouched)
    if rendered.footprint is not None:
        ledger.take(connection, submission.cluster, submission.place, submission.id, rendered.footprint)
    outbox.put(connection, Parcel(submission, rendered.order))
    return kept


def refuse(connection: Connection, submission: Submission, refused: Refused) -> Kept:
    """What is wrong by itself: it takes from nobody, and is on record all the same."""
    # The same may be asked at the same time.
    ledger.lock(connection, submission.cluster, submission.place.project)
    if before := known(connection, submission):
        return before
    return _decided(connection, submission, Decision.refused(Judge.DESK, submission.at, refused))


def _decided(connection: Connection, submission: Submission, decision: Decision) -> Kept:
    record.keep(connection, submission)
    record.decide(connection, submission, decision)
    return record.new(submission, decision)


def known(connection: Connection, submission: Submission) -> Kept | None:
    """By its key: the same again is answered as it was, and something else is refused."""
    before = record.keyed(connection, submission.place.project, submission.who, submission.key)
    if before and before.digest != submission.digest:
        what = f"the idempotency key of {before.id} was sent with something else"
        raise Refused(Problem(KEY_REUSED, what, Where(object=_named(before.place)), next="take a new key"))
    return before


def _named(place: Place) -> str:
    return f"{place.project}/{place.name}"


class Fit(NamedTuple):
    """Whether it fits into the quota of its project."""

    refused: Refused | None = None
    room: tuple[str, ...] = ()
    """What is left of what is bounded."""


def fits(connection: Connection, cluster: str, rendered: Rendered, *, told: bool = False) -> Fit:
    """By the ledger as it is; what is left is told to whoever asks for that."""
    project, wants, place = rendered.project, rendered.footprint, rendered.place
    if project is None or wants is None:
        return Fit()
    has, others = ledger.taken(connection, cluster, place, wants.tier)
    asked = Asked(place.name, wants, has, others)
    if problem := allowance.closed(project, asked):
        return Fit(Refused(problem))
    if not told and not allowance.short(project, asked):
        return Fit()
    holders = ledger.held(connection, cluster, place.project, wants.tier)
    holders.pop((place.kind, place.name), None)
    asked = asked._replace(others=ledger.total(holders.values()))
    room, found = tuple(allowance.room(project, asked)), allowance.short(project, asked)
    if not found:
        return Fit(room=room)
    thing = found[0].thing
    most = sorted(holders.items(), key=lambda each: (-getattr(each[1], thing), each[0]))
    named = [(name, footprint) for (_, name), footprint in most if getattr(footprint, thing)]
    return Fit(Refused(allowance.refusal(project, asked, found, named)), room)

"""Accept: one transaction decides, and writes down all that follows from it, or nothing at all.

What was submitted by itself is a set of one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import KEY_REUSED
from pincompute.planning.quotas import allowance
from pincompute.planning.quotas.allowance import Asked, Fit, Taking
from pincompute.planning.quotas.footprint import Place
from pincompute.submission import ledger, outbox, record
from pincompute.submission.database import Connection
from pincompute.submission.outbox import Parcel
from pincompute.submission.platform import Rendered
from pincompute.submission.record import Decision, Judge, Kept, Submission, Vouched
from pincompute.submission.sets import called, spared


class Proposal(NamedTuple):
    """What is to become of a workload, and who vouches for that."""

    submission: Submission
    rendered: Rendered
    vouched: Vouched | None = None


def accept(connection: Connection, *proposals: Proposal) -> list[Kept]:
    """What is decided now, of all or of none; or what was, when this was submitted before."""
    submissions = [each.submission for each in proposals]
    _lock(connection, submissions)
    if before := known(connection, submissions):
        return before
    taken: list[Place] = []
    refused: dict[str, Refused] = {}
    for submission, rendered, _ in proposals:
        if problem := unfit(connection, submission.cluster, rendered, taken):
            refused[submission.id] = Refused(problem)
            continue
        if rendered.footprint is not None:
            ledger.take(connection, submission.cluster, rendered.place, submission.id, rendered.footprint)
        taken.append(rendered.place)
    if refused:
        for each in submissions:
            ledger.release(connection, each.cluster, each.place, each.id)
        return _refused(connection, submissions, refused)
    return [_accepted(connection, each) for each in proposals]


def _accepted(connection: Connection, proposal: Proposal) -> Kept:
    submission, rendered, vouched = proposal
    kept = _decided(connection, submission, Decision(Judge.DESK, submission.at, accepted=True, rule="", words=""))
    if rendered.whole is not None:
        record.revise(connection, submission, rendered.whole)
    if vouched is not None:
        record.vouch(connection, submission, vouched)
    outbox.put(connection, Parcel(submission, rendered.order))
    return kept


def refuse(connection: Connection, submissions: Sequence[Submission], refused: Mapping[str, Refused]) -> list[Kept]:
    """What is wrong by itself, and with it all of its set: it takes from nobody, and is on record all the same."""
    # The same may be asked at the same time.
    _lock(connection, submissions)
    return known(connection, submissions) or _refused(connection, submissions, refused)


def _refused(connection: Connection, submissions: Sequence[Submission], refused: Mapping[str, Refused]) -> list[Kept]:
    """By their ids; of the others it is told because of which they are."""
    because = [called(each.place, number) for number, each in enumerate(submissions, 1) if each.id in refused]
    told = [refused.get(each.id) or Refused(spared(each.place, because)) for each in submissions]
    return [
        _decided(connection, each, Decision.refused(Judge.DESK, each.at, why))
        for each, why in zip(submissions, told, strict=True)
    ]


def _lock(connection: Connection, submissions: Sequence[Submission]) -> None:
    """In one order, so that no two sets wait for each other."""
    for cluster, project in sorted({(each.cluster, each.place.project) for each in submissions}):
        ledger.lock(connection, cluster, project)


def _decided(connection: Connection, submission: Submission, decision: Decision) -> Kept:
    record.keep(connection, submission)
    record.decide(connection, submission, decision)
    return record.new(submission, decision)


def known(connection: Connection, submissions: Sequence[Submission]) -> list[Kept]:
    """By their keys: the same again is answered as it was, and something else is refused.

    Those of one set were kept together, so that it is all of them or none.
    """
    return [before for each in submissions if (before := _known(connection, each))]


def _known(connection: Connection, submission: Submission) -> Kept | None:
    before = record.keyed(connection, submission.place.project, submission.who, submission.key)
    if before and before.digest != submission.digest:
        what = f"the idempotency key of {before.id} was sent with something else"
        raise Refused(Problem(KEY_REUSED, what, Where(object=_named(before.place)), next="take a new key"))
    return before


def _named(place: Place) -> str:
    return f"{place.project}/{place.name}"


def unfit(connection: Connection, cluster: str, rendered: Rendered, beside: Collection[Place] = ()) -> Problem | None:
    """Why it does not fit into its project's quota, by the ledger as it is, and beside others of its set."""
    project, wants, place = rendered.project, rendered.footprint, rendered.place
    if project is None or wants is None:
        return None
    has, others = ledger.taken(connection, cluster, place, wants.tier)
    asked = Asked(place.name, wants, has, others)
    if not allowance.closed(project, asked) and not allowance.short(project, asked):
        return None
    held = ledger.held(connection, cluster, place.project, wants.tier)
    return allowance.fit(_taking(rendered), held, beside).refused


def foretold(connection: Connection, cluster: str, rendered: Sequence[Rendered | None]) -> list[Fit]:
    """Whether each would fit where all are taken, and what would be left then; nothing is taken."""
    tiers = sorted({(each.place.project, each.footprint.tier) for each in rendered if each and each.footprint})
    held = {(project, tier): ledger.held(connection, cluster, project, tier) for project, tier in tiers}
    return allowance.fit_together([_taking(each) if each else None for each in rendered], held)


def _taking(rendered: Rendered) -> Taking:
    return Taking(rendered.place, rendered.project, rendered.footprint)

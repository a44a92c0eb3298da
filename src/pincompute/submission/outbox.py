"""The outbox: what was accepted and must reach its platform. It is written with the decision, or not at all."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

import msgspec
import sqlalchemy as sql
from sqlalchemy import RowMapping

from pincompute.api.kinds import WORKLOADS
from pincompute.api.tenancy import OnItsWay
from pincompute.api.workload import Workload
from pincompute.base.problem import Refused
from pincompute.planning.quotas.footprint import Place
from pincompute.submission import ledger, record
from pincompute.submission.database import Connection
from pincompute.submission.platform import Delivered, Order
from pincompute.submission.record import Decision, Judge, Submission
from pincompute.submission.tables import outbox, revisions, submissions

_orders: msgspec.json.Decoder[Order] = msgspec.json.Decoder(Order)

AT_ONCE = 1_000
"""Orders that are read at one time."""
_PENDING = (
    sql.select(revisions.c.kind, revisions.c.workload)
    .join(outbox, outbox.c.submission == revisions.c.submission)
    .where(
        outbox.c.cluster == sql.bindparam("of"), outbox.c.project == sql.bindparam("at"),
        outbox.c.name == sql.bindparam("called"), outbox.c.done_at.is_(None),
    )
    .order_by(outbox.c.number.desc())
    .limit(1)
)  # fmt: skip
_OPEN = sql.select(sql.func.count()).where(outbox.c.cluster == sql.bindparam("of"), outbox.c.done_at.is_(None))
_PUT = outbox.insert()
_of_submission = outbox.c.submission == sql.bindparam("of")
_DONE = outbox.update().where(_of_submission, outbox.c.done_at.is_(None)).values(done_at=sql.bindparam("at"))


class Parcel(NamedTuple):
    """One order on its way."""

    submission: Submission
    order: Order


def put(connection: Connection, parcel: Parcel) -> None:
    submission = parcel.submission
    row = {
        "submission": submission.id, "cluster": submission.cluster, **submission.place._asdict(),
        "payload": msgspec.json.encode(parcel.order).decode(),
    }  # fmt: skip
    connection.execute(_PUT, row)


def waiting(connection: Connection, cluster: str, known: Collection[str] = ()) -> list[Parcel]:
    """In the order in which they were accepted, without those that somebody knows already."""
    there = (outbox.c.cluster == cluster, outbox.c.done_at.is_(None))
    found = connection.execute(sql.select(outbox.c.submission).where(*there).order_by(outbox.c.number)).scalars()
    new = [each for each in found if each not in known][:AT_ONCE]
    if not new:
        return []
    asked = outbox.join(submissions, submissions.c.id == outbox.c.submission).select()
    rows = connection.execute(asked.where(outbox.c.submission.in_(new)).order_by(outbox.c.number)).mappings()
    return [_parcel(row, cluster) for row in rows]


def _parcel(row: RowMapping, cluster: str) -> Parcel:
    place = Place(row[outbox.c.project], row[outbox.c.kind], row[outbox.c.name])
    at = datetime.fromisoformat(row[submissions.c.at])
    who, verb = row[submissions.c.who], row[submissions.c.verb]
    submission = Submission(row[outbox.c.submission], at, who, cluster, place, verb, row[submissions.c.document])
    return Parcel(submission, _orders.decode(row[outbox.c.payload]))


def pending(connection: Connection, cluster: str, project: str, name: str) -> Workload | None:
    """What a workload was last accepted as, where that is still on its way."""
    row = connection.execute(_PENDING, {"of": cluster, "at": project, "called": name}).mappings().first()
    return msgspec.json.decode(row[revisions.c.workload], type=WORKLOADS[row[revisions.c.kind]]) if row else None


def on_their_way(connection: Connection, cluster: str) -> int:
    found: int = connection.execute(_OPEN, {"of": cluster}).scalar_one()
    return found


def open_of(connection: Connection, cluster: str, project: str) -> list[OnItsWay]:
    """What of a project is on its way, in the order in which it was accepted."""
    asked = (
        sql.select(
            submissions.c.id, outbox.c.name, outbox.c.kind, submissions.c.verb, submissions.c.at, submissions.c.who,
            outbox.c.attempts, outbox.c.last_error.label("waits"),
        )
        .join(submissions, submissions.c.id == outbox.c.submission)
        .where(outbox.c.cluster == cluster, outbox.c.project == project, outbox.c.done_at.is_(None))
        .order_by(outbox.c.number)
    )  # fmt: skip
    return [msgspec.convert(row, OnItsWay, from_attributes=True) for row in connection.execute(asked)]


def tried(connection: Connection, submission: str, error: str) -> None:
    attempts = {"attempts": outbox.c.attempts + 1, "last_error": error}
    connection.execute(outbox.update().where(outbox.c.submission == submission).values(attempts))


def delivered(connection: Connection, submission: Submission, at: datetime, found: Delivered) -> None:
    answer = msgspec.json.encode(found.answer).decode()
    if not _conclude(connection, submission, Decision(Judge.PLATFORM, at, accepted=True, rule="", words=answer)):
        return
    if found.written:
        ledger.written(connection, submission.cluster, submission.place, submission.id, found.written)
    else:
        ledger.release(connection, submission.cluster, submission.place, submission.id)


def returned(connection: Connection, submission: Submission, at: datetime, refused: Refused) -> None:
    """The platform will not have it: what it took of the quota is free again."""
    if _conclude(connection, submission, Decision.refused(Judge.PLATFORM, at, refused)):
        ledger.release(connection, submission.cluster, submission.place, submission.id)


def concluded(connection: Connection, submission: str) -> bool:
    asked = sql.select(outbox.c.done_at).where(outbox.c.submission == submission)
    return connection.execute(asked).scalar() is not None


def _conclude(connection: Connection, submission: Submission, decision: Decision) -> bool:
    """Once: another desk that has taken over may have told of it."""
    if not connection.execute(_DONE, {"of": submission.id, "at": decision.at.isoformat()}).rowcount:
        return False
    record.decide(connection, submission, decision)
    return True

"""The outbox: what was accepted and must reach its platform. It is written with the decision, or not at all."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

import msgspec
import sqlalchemy as sql
from sqlalchemy import RowMapping

from pincompute.api.kinds import WORKLOADS
from pincompute.api.workload import Workload
from pincompute.base.problem import Refused
from pincompute.planning.quotas.footprint import Place
from pincompute.submission import ledger, record
from pincompute.submission.database import Connection
from pincompute.submission.platform import Delivered, Order
from pincompute.submission.record import Decision, Judge, Submission
from pincompute.submission.tables import outbox, revisions, submissions

_orders: msgspec.json.Decoder[Order] = msgspec.json.Decoder(Order)

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
    connection.execute(outbox.insert(), row)


def waiting(connection: Connection, cluster: str) -> list[Parcel]:
    """In the order in which they were accepted."""
    asked = (
        outbox.join(submissions, submissions.c.id == outbox.c.submission)
        .select()
        .where(outbox.c.cluster == cluster, outbox.c.done_at.is_(None))
        .order_by(outbox.c.number)
    )
    return [_parcel(row, cluster) for row in connection.execute(asked).mappings()]


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


def tried(connection: Connection, submission: str, error: str) -> None:
    attempts = {"attempts": outbox.c.attempts + 1, "last_error": error}
    connection.execute(outbox.update().where(outbox.c.submission == submission).values(attempts))


def delivered(connection: Connection, submission: Submission, at: datetime, found: Delivered) -> None:
    answer = msgspec.json.encode(found.answer).decode()
    _conclude(connection, submission, Decision(Judge.PLATFORM, at, accepted=True, rule="", words=answer))
    if found.written:
        ledger.written(connection, submission.id, found.written)
    else:
        ledger.release(connection, submission.id)


def returned(connection: Connection, submission: Submission, at: datetime, refused: Refused) -> None:
    """The platform will not have it: what it took of the quota is free again."""
    _conclude(connection, submission, Decision.refused(Judge.PLATFORM, at, refused))
    ledger.release(connection, submission.id)


def _conclude(connection: Connection, submission: Submission, decision: Decision) -> None:
    done = {"done_at": decision.at.isoformat()}
    connection.execute(outbox.update().where(outbox.c.submission == submission.id).values(done))
    record.decide(connection, submission, decision)

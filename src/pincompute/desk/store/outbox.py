"""The outbox: accepted commands that must reach their platform.

An entry is written in the transaction that accepts the submission, so that nothing accepted is lost, and nothing is
delivered that was not accepted.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

import msgspec
import sqlalchemy as sql
from sqlalchemy import RowMapping

from pincompute.api.custom_resource import CustomResource
from pincompute.api.kinds import KINDS, WORKLOADS
from pincompute.api.project_view import PendingSubmission
from pincompute.base.problem import Refused
from pincompute.desk.store import ledger, record
from pincompute.desk.store.database import Connection
from pincompute.desk.store.former_spellings import decode_command
from pincompute.desk.store.record import DecidedBy, Decision, Submission
from pincompute.desk.store.tables import outbox, revisions, submissions
from pincompute.planning.footprint import WorkloadKey
from pincompute.platforms.protocol import Delivery, PlatformCommand

_MAX_ENTRIES = 1_000
"""Entries that are read at once."""
# Statements are built once: building one takes longer than executing it.
_SELECT_PENDING_RESOURCE = (
    sql.select(revisions.c.kind, revisions.c.workload)
    .join(outbox, outbox.c.submission == revisions.c.submission)
    .where(
        outbox.c.cluster == sql.bindparam("of_cluster"), outbox.c.project == sql.bindparam("of_project"),
        outbox.c.name == sql.bindparam("of_name"), outbox.c.done_at.is_(None),
        outbox.c.kind.in_(sql.bindparam("of_kinds", expanding=True)),
    )
    .order_by(outbox.c.number.desc())
    .limit(1)
)  # fmt: skip
_COUNT_UNDELIVERED = sql.select(sql.func.count()).where(
    outbox.c.cluster == sql.bindparam("of_cluster"), outbox.c.done_at.is_(None)
)
_INSERT = outbox.insert()
_COMPLETE = (
    outbox.update()
    .where(outbox.c.submission == sql.bindparam("of_submission"), outbox.c.done_at.is_(None))
    .values(done_at=sql.bindparam("at"))
)


class OutboxEntry(NamedTuple):
    """One command on its way, and the submission that it is of."""

    submission: Submission
    command: PlatformCommand


def insert_entry(connection: Connection, entry: OutboxEntry) -> None:
    submission = entry.submission
    row = {
        "submission": submission.id, "cluster": submission.cluster, **submission.workload_key._asdict(),
        "payload": msgspec.json.encode(entry.command).decode(),
    }  # fmt: skip
    connection.execute(_INSERT, row)


def undelivered_entries(connection: Connection, cluster: str, known: Collection[str] = ()) -> list[OutboxEntry]:
    """The first undelivered entries in the order of acceptance, except those with known submission ids."""
    undelivered = (outbox.c.cluster == cluster, outbox.c.done_at.is_(None))
    ids = connection.execute(sql.select(outbox.c.submission).where(*undelivered).order_by(outbox.c.number)).scalars()
    new = [each for each in ids if each not in known][:_MAX_ENTRIES]
    if not new:
        return []
    select = outbox.join(submissions, submissions.c.id == outbox.c.submission).select()
    rows = connection.execute(select.where(outbox.c.submission.in_(new)).order_by(outbox.c.number)).mappings()
    return [_entry_of(row, cluster) for row in rows]


def _entry_of(row: RowMapping, cluster: str) -> OutboxEntry:
    key = WorkloadKey(row[outbox.c.project], row[outbox.c.kind], row[outbox.c.name])
    at = datetime.fromisoformat(row[submissions.c.at])
    caller, verb = row[submissions.c.who], row[submissions.c.verb]
    submission = Submission(row[outbox.c.submission], at, caller, cluster, key, verb, row[submissions.c.document])
    return OutboxEntry(submission, decode_command(row[outbox.c.payload]))


def pending_resource(connection: Connection, cluster: str, key: WorkloadKey) -> CustomResource | None:
    """The resource as it was last accepted, if that is not delivered yet.

    The kind of a workload may be unknown, as its name is unique over all kinds; a project may have the same name.
    """
    kinds = list(WORKLOADS) if key.kind in {"", *WORKLOADS} else [key.kind]
    names = {"of_cluster": cluster, "of_project": key.project, "of_name": key.name, "of_kinds": kinds}
    row = connection.execute(_SELECT_PENDING_RESOURCE, names).mappings().first()
    return msgspec.json.decode(row[revisions.c.workload], type=KINDS[row[revisions.c.kind]]) if row else None


def count_undelivered(connection: Connection, cluster: str) -> int:
    count: int = connection.execute(_COUNT_UNDELIVERED, {"of_cluster": cluster}).scalar_one()
    return count


def undelivered_of_project(connection: Connection, cluster: str, project: str) -> list[PendingSubmission]:
    """A project's undelivered submissions in the order of acceptance."""
    select = (
        sql.select(
            submissions.c.id, outbox.c.name, outbox.c.kind, submissions.c.verb,
            submissions.c.at.label("accepted_at"), submissions.c.who.label("caller"),
            outbox.c.attempts, outbox.c.last_error.label("last_delivery_error"),
        )
        .join(submissions, submissions.c.id == outbox.c.submission)
        .where(outbox.c.cluster == cluster, outbox.c.project == project, outbox.c.done_at.is_(None))
        .order_by(outbox.c.number)
    )  # fmt: skip
    return [msgspec.convert(row, PendingSubmission, from_attributes=True) for row in connection.execute(select)]


def record_attempt(connection: Connection, submission: str, error: str) -> None:
    """Counts a failed delivery attempt."""
    attempt = {"attempts": outbox.c.attempts + 1, "last_error": error}
    connection.execute(outbox.update().where(outbox.c.submission == submission).values(attempt))


def record_delivery(connection: Connection, submission: Submission, at: datetime, delivery: Delivery) -> None:
    """Completes an entry: the platform has carried out its command."""
    result = msgspec.json.encode(delivery.result).decode()
    if not _complete(connection, submission, Decision(DecidedBy.PLATFORM, at, accepted=True, rule="", words=result)):
        return
    cluster, key = submission.cluster, submission.workload_key
    if delivery.written_revision:
        # The reservation stays until the ledger shows what was written.
        ledger.mark_written(connection, cluster, key, submission.id, delivery.written_revision)
    else:
        ledger.release_reservation(connection, cluster, key, submission.id)


def record_rejection(connection: Connection, submission: Submission, at: datetime, refused: Refused) -> None:
    """Completes an entry: the platform has refused its command. Its quota is free again."""
    if _complete(connection, submission, Decision.refused(DecidedBy.PLATFORM, at, refused)):
        ledger.release_reservation(connection, submission.cluster, submission.workload_key, submission.id)


def is_completed(connection: Connection, submission: str) -> bool:
    select = sql.select(outbox.c.done_at).where(outbox.c.submission == submission)
    return connection.execute(select).scalar() is not None


def _complete(connection: Connection, submission: Submission, decision: Decision) -> bool:
    """False if it is completed already: another desk may have delivered it when this one lost the leadership."""
    if not connection.execute(_COMPLETE, {"of_submission": submission.id, "at": decision.at.isoformat()}).rowcount:
        return False
    record.insert_decision(connection, submission, decision)
    return True

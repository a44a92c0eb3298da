"""The record: submissions with their callers and times, the decisions on them, and the accepted workloads.

Rows are only ever added; a submission's state follows from its decisions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sql

from pincompute.admission.commits import AcceptedCommit
from pincompute.api.custom_resource import CustomResource
from pincompute.api.kinds import WORKLOADS
from pincompute.api.project import Project
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import DOCUMENT_INVALID, find_reason
from pincompute.desk.store.database import Connection
from pincompute.desk.store.former_spellings import former_document
from pincompute.desk.store.tables import audit, builds, decisions, outbox, revisions, submissions
from pincompute.planning.footprint import WorkloadKey

DEPLOY, BREAK_GLASS, ROLLBACK, DELETE = "deploy", "break-glass", "rollback", "delete"
"""Verbs of submissions. Every other verb is the name of a change."""
DEPLOYMENTS = (DEPLOY, BREAK_GLASS, ROLLBACK)
"""Verbs that bring in content. Every other change keeps the build that the workload runs."""

MAX_ACCEPTED_COMMITS = 20
MAX_ACCEPTED_DEPLOYS = 200
"""How many commits, and of how many deploys, a new build may lie on top of: in general it is on the last one."""

# Statements are built once: building one takes longer than executing it.
_INSERT_SUBMISSION, _INSERT_DECISION, _INSERT_AUDIT, _INSERT_REVISION = (
    each.insert() for each in (submissions, decisions, audit, revisions)
)
_SELECT_SUBMISSION = sql.select(submissions, outbox.c.attempts, outbox.c.last_error).outerjoin(
    outbox, outbox.c.submission == submissions.c.id
)
_SELECT_BUILD = sql.select(
    builds.c.version, builds.c.commit, builds.c.builder, builds.c.reviewers, builds.c.attestation
)


class DecidedBy(StrEnum):
    """The desk decides first. If it accepts, the platform decides when the command is delivered."""

    DESK = "desk"
    PLATFORM = "platform"


class SubmissionState(StrEnum):
    ACCEPTED = "accepted"
    """Recorded, and not delivered yet."""
    DELIVERED = "delivered"
    REFUSED = "refused"


class Submission(NamedTuple):
    """One request for one workload, as it is recorded."""

    id: str
    at: datetime
    caller: str
    cluster: str
    workload_key: WorkloadKey
    verb: str
    document: str
    idempotency_key: str = ""
    about: str = ""
    """Covered by the digest beside the document: the workload's name, a set, an override."""
    audit_reason: str = ""
    """The reason in the audit log."""

    @property
    def digest(self) -> str:
        """Equal for requests that ask for the same: a repeated idempotency key must come with the same digest."""
        return self._digest_of(self.document)

    @property
    def digests(self) -> tuple[str, ...]:
        """The digest, and that which the previous release would have recorded."""
        former = former_document(self.verb, self.document)
        return (self.digest,) if former == self.document else (self.digest, self._digest_of(former))

    def _digest_of(self, document: str) -> str:
        return hashlib.sha256("\0".join((self.verb, self.about, document)).encode()).hexdigest()


class Decision(NamedTuple):
    """A row of the table `decisions`, which has columns of these names."""

    judge: DecidedBy
    at: datetime
    accepted: bool
    rule: str
    """Reason code of a refusal."""
    words: str
    """The problems of a refusal, or the platform's result; as JSON."""

    @classmethod
    def refused(cls, judge: DecidedBy, at: datetime, refused: Refused) -> Decision:
        words = msgspec.json.encode(refused.json()["errors"]).decode()
        return cls(judge, at, accepted=False, rule=refused.problems[0].reason.code, words=words)

    def refusal(self) -> Refused:
        """The refusal, with the problems as they were first reported."""
        try:
            problems: list[dict[str, Any]] = msgspec.json.decode(self.words)
        except msgspec.DecodeError:
            # The first desk recorded plain text.
            return Refused(Problem(find_reason(self.rule) or DOCUMENT_INVALID, self.words))
        return Refused(*map(Problem.from_json, problems))


class SubmissionRecord(NamedTuple):
    """A submission as it is recorded, with the decisions on it."""

    id: str
    at: str
    caller: str
    workload_key: WorkloadKey
    verb: str
    digest: str
    decisions: tuple[Decision, ...]
    attempts: int = 0
    """Failed delivery attempts."""
    last_error: str = ""

    @property
    def state(self) -> SubmissionState:
        if not all(each.accepted for each in self.decisions):
            return SubmissionState.REFUSED
        delivered = any(each.judge is DecidedBy.PLATFORM for each in self.decisions)
        return SubmissionState.DELIVERED if delivered else SubmissionState.ACCEPTED


class VerifiedBuild(NamedTuple):
    """The build of a submission, as it was verified. A row of the table `builds`, which has columns of these names."""

    version: str
    commit: str
    builder: str
    reviewers: str
    """Separated by commas."""
    attestation: str
    """The signed statement and its signatures, as JSON."""


def record_of(submission: Submission, *decisions: Decision) -> SubmissionRecord:
    at, key = submission.at.isoformat(), submission.workload_key
    return SubmissionRecord(submission.id, at, submission.caller, key, submission.verb, submission.digest, decisions)


def insert_submission(connection: Connection, submission: Submission) -> None:
    row = {
        "id": submission.id, "key": submission.idempotency_key or None, "who": submission.caller,
        "at": submission.at.isoformat(), "cluster": submission.cluster, **submission.workload_key._asdict(),
        "verb": submission.verb, "document": submission.document, "digest": submission.digest,
    }  # fmt: skip
    connection.execute(_INSERT_SUBMISSION, row)


def insert_decision(connection: Connection, submission: Submission, decision: Decision) -> None:
    """Records a decision and its line of the audit log."""
    row = {**decision._asdict(), "submission": submission.id, "at": decision.at.isoformat()}
    connection.execute(_INSERT_DECISION, row)
    audit_access(
        connection,
        at=decision.at, caller=submission.caller, workload_key=submission.workload_key,
        act=f"{submission.verb}: {'accepted' if decision.accepted else 'refused'} by the {decision.judge}",
        words=submission.audit_reason if decision.accepted else decision.rule, submission=submission.id,
    )  # fmt: skip


def audit_access(  # noqa: PLR0913  (the columns of a row)
    connection: Connection,
    *,
    at: datetime,
    caller: str,
    workload_key: WorkloadKey,
    act: str,
    words: str,
    submission: str = "",
) -> None:
    """Adds a line to the audit log; also for what is no submission, such as an exec."""
    about = "/".join(filter(None, (workload_key.kind, workload_key.name)))
    row = {
        "at": at.isoformat(), "who": caller, "act": act, "project": workload_key.project,
        "about": about, "submission": submission, "words": words,
    }  # fmt: skip
    connection.execute(_INSERT_AUDIT, row)


def insert_revision(connection: Connection, submission: Submission, workload: CustomResource) -> None:
    row = {
        "submission": submission.id, "cluster": submission.cluster, **submission.workload_key._asdict(),
        "at": submission.at.isoformat(), "workload": msgspec.json.encode(workload).decode(),
    }  # fmt: skip
    connection.execute(_INSERT_REVISION, row)


def insert_verified_build(connection: Connection, submission: Submission, build: VerifiedBuild) -> None:
    connection.execute(builds.insert().values(submission=submission.id, **build._asdict()))


def last_deployment(
    connection: Connection, project: str, name: str
) -> tuple[SubmissionRecord, VerifiedBuild | None] | None:
    """The last deploy or rollback of a workload that was not refused, and the build that it brought in."""
    select = _SELECT_SUBMISSION.where(
        submissions.c.project == project, submissions.c.name == name, submissions.c.verb.in_(DEPLOYMENTS),
        # A project may have the name of one of its workloads.
        submissions.c.kind != Project.__name__,
        ~sql.exists().where(decisions.c.submission == submissions.c.id, decisions.c.accepted.is_(False)),
    )  # fmt: skip
    # Selected by verb in the database: the workload may have been scaled ten thousand times since.
    found = _read_submission(connection, select.order_by(submissions.c.number.desc()).limit(1))
    if found is None:
        return None
    row = connection.execute(_SELECT_BUILD.where(builds.c.submission == found.id)).first()
    return found, VerifiedBuild(*row) if row else None


def last_deletion(connection: Connection, project: str, name: str) -> SubmissionRecord | None:
    """The deletion of a workload that is gone, unless it was deployed again since."""
    select = _SELECT_SUBMISSION.where(
        submissions.c.project == project, submissions.c.name == name,
        submissions.c.verb.in_((DEPLOY, BREAK_GLASS, DELETE)),
        ~sql.exists().where(decisions.c.submission == submissions.c.id, decisions.c.accepted.is_(False)),
    )  # fmt: skip
    found = _read_submission(connection, select.order_by(submissions.c.number.desc()).limit(1))
    return found if found and found.verb == DELETE else None


def callers_of(connection: Connection, project: str, submissions_: Collection[str]) -> dict[str, str]:
    """The callers that have sent submissions of a project, by id."""
    select = sql.select(submissions.c.id, submissions.c.who)
    rows = connection.execute(select.where(submissions.c.project == project, submissions.c.id.in_(submissions_)))
    return {row.id: row.who for row in rows}


class AcceptedBuild(NamedTuple):
    """A workload as a deploy of a build was accepted, and the build."""

    workload: Workload
    build: VerifiedBuild


def accepted_builds(
    connection: Connection, project: str, name: str, version: str, verb: str = DEPLOY
) -> list[AcceptedBuild]:
    """The deploys of a version that were accepted without an override, or by BREAK_GLASS with one; newest first."""
    select = _select_accepted(project, name, verb).add_columns(*_SELECT_BUILD.selected_columns)
    select = select.join(builds, builds.c.submission == revisions.c.submission).where(builds.c.version == version)
    rows = connection.execute(select.order_by(submissions.c.number.desc()))
    return [AcceptedBuild(_workload_of(row), VerifiedBuild(*row[2:])) for row in rows]


def accepted_commits(connection: Connection, project: str) -> list[AcceptedCommit]:
    """The commits of the last builds that were accepted in a project without an override, newest first."""
    select = sql.select(builds.c.commit, builds.c.reviewers).join(submissions, submissions.c.id == builds.c.submission)
    select = select.where(submissions.c.project == project, submissions.c.verb == DEPLOY, builds.c.reviewers != "")
    # A commit is deployed several times: with each workload of the project, and again after a change of it.
    rows = connection.execute(select.order_by(submissions.c.number.desc()).limit(MAX_ACCEPTED_DEPLOYS))
    newest: dict[str, AcceptedCommit] = {}
    for row in rows:
        newest.setdefault(row.commit, AcceptedCommit(row.commit, frozenset(row.reviewers.split(", "))))
    return list(newest.values())[:MAX_ACCEPTED_COMMITS]


def accepted_by_break_glass(connection: Connection, project: str, name: str) -> list[Workload]:
    """A workload as each deploy under an emergency override was accepted."""
    return [_workload_of(row) for row in connection.execute(_select_accepted(project, name, BREAK_GLASS))]


def _select_accepted(project: str, name: str, verb: str) -> sql.Select[Any, Any]:
    select = sql.select(revisions.c.kind, revisions.c.workload)
    select = select.join(submissions, submissions.c.id == revisions.c.submission)
    return select.where(submissions.c.project == project, submissions.c.name == name, submissions.c.verb == verb)


def _workload_of(row: sql.Row[Any, Any]) -> Workload:
    return msgspec.json.decode(row.workload, type=WORKLOADS[row.kind])


def find_by_idempotency_key(connection: Connection, project: str, caller: str, key: str) -> SubmissionRecord | None:
    if not key:
        return None
    where = (submissions.c.project == project, submissions.c.who == caller, submissions.c.key == key)
    return _read_submission(connection, _SELECT_SUBMISSION.where(*where))


def find_by_id(connection: Connection, project: str, id_: str) -> SubmissionRecord | None:
    where = (submissions.c.project == project, submissions.c.id == id_)
    return _read_submission(connection, _SELECT_SUBMISSION.where(*where))


def _read_submission(connection: Connection, select: sql.Select[Any, Any]) -> SubmissionRecord | None:
    row = connection.execute(select).mappings().first()
    if row is None:
        return None
    # "desk" comes before "platform" in the alphabet, too.
    select = decisions.select().where(decisions.c.submission == row["id"]).order_by(decisions.c.judge)
    decided = tuple(
        Decision(DecidedBy(each.judge), datetime.fromisoformat(each.at), each.accepted, each.rule, each.words)
        for each in connection.execute(select)
    )
    key = WorkloadKey(row["project"], row["kind"], row["name"])
    return SubmissionRecord(
        row["id"], row["at"], row["who"], key, row["verb"], row["digest"], decided,
        row["attempts"] or 0, row["last_error"] or "",
    )  # fmt: skip

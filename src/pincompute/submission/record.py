"""The record of truth: who submitted what, when, and what became of it."""

from __future__ import annotations

import hashlib
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sql

from pincompute.api.kinds import WORKLOADS
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import DOCUMENT_INVALID, REASONS
from pincompute.planning.quotas.footprint import Place
from pincompute.submission.database import Connection
from pincompute.submission.tables import audit, builds, decisions, outbox, revisions, submissions

DEPLOY, BREAK_GLASS = "deploy", "break-glass"
"""How work comes in."""

# Putting a statement together takes longer than what it does.
_KEEP, _DECIDE, _NOTE, _REVISE = (each.insert() for each in (submissions, decisions, audit, revisions))
_SOUGHT = sql.select(submissions, outbox.c.attempts, outbox.c.last_error).outerjoin(
    outbox, outbox.c.submission == submissions.c.id
)


class Judge(StrEnum):
    """Who decides: first the desk, and where it accepts, the platform."""

    DESK = "desk"
    PLATFORM = "platform"


class State(StrEnum):
    ACCEPTED = "accepted"
    """On record, and on its way."""
    DELIVERED = "delivered"
    REFUSED = "refused"


class Submission(NamedTuple):
    id: str
    at: datetime
    who: str
    cluster: str
    place: Place
    verb: str
    document: str
    key: str = ""
    about: str = ""
    """Which workload, where the document does not say it."""
    because: str = ""
    """What the audit keeps of why."""

    @property
    def digest(self) -> str:
        """The same where the same is asked."""
        said = "\0".join((self.verb, self.about, self.document))
        return hashlib.sha256(said.encode()).hexdigest()


class Decision(NamedTuple):
    judge: Judge
    at: datetime
    accepted: bool
    rule: str
    words: str
    """Why not, or what was answered; as JSON."""

    @classmethod
    def refused(cls, judge: Judge, at: datetime, refused: Refused) -> Decision:
        words = msgspec.json.encode(refused.json()["errors"]).decode()
        return cls(judge, at, accepted=False, rule=refused.problems[0].reason.code, words=words)

    def refusal(self) -> Refused:
        """As it was told the first time."""
        try:
            said: list[dict[str, Any]] = msgspec.json.decode(self.words)
        except msgspec.DecodeError:
            return Refused(Problem(REASONS.get(self.rule, DOCUMENT_INVALID), self.words))
        return Refused(*map(Problem.of, said))


class Kept(NamedTuple):
    """A submission as the record has it."""

    id: str
    at: str
    who: str
    place: Place
    verb: str
    digest: str
    decisions: tuple[Decision, ...]
    attempts: int = 0
    last_error: str = ""

    @property
    def state(self) -> State:
        if not all(each.accepted for each in self.decisions):
            return State.REFUSED
        delivered = any(each.judge is Judge.PLATFORM for each in self.decisions)
        return State.DELIVERED if delivered else State.ACCEPTED


def new(submission: Submission, *decisions: Decision) -> Kept:
    at, place = submission.at.isoformat(), submission.place
    return Kept(submission.id, at, submission.who, place, submission.verb, submission.digest, decisions)


def keep(connection: Connection, submission: Submission) -> None:
    place = submission.place
    row = {
        "id": submission.id, "key": submission.key or None, "who": submission.who, "at": submission.at.isoformat(),
        "cluster": submission.cluster, **place._asdict(), "verb": submission.verb,
        "document": submission.document, "digest": submission.digest,
    }  # fmt: skip
    connection.execute(_KEEP, row)


def decide(connection: Connection, submission: Submission, decision: Decision) -> None:
    """And it is audited in the same breath."""
    row = {**decision._asdict(), "submission": submission.id, "at": decision.at.isoformat()}
    connection.execute(_DECIDE, row)
    note(
        connection, decision.at, submission,
        f"{submission.verb}: {'accepted' if decision.accepted else 'refused'} by the {decision.judge}",
        submission.because if decision.accepted else decision.rule,
    )  # fmt: skip


def note(connection: Connection, at: datetime, submission: Submission, act: str, words: str) -> None:
    noted(connection, at=at, who=submission.who, place=submission.place, act=act, words=words, submission=submission.id)


def noted(  # noqa: PLR0913  (the columns of a row)
    connection: Connection, *, at: datetime, who: str, place: Place, act: str, words: str, submission: str = ""
) -> None:
    """Who did what, also where nothing was submitted."""
    row = {
        "at": at.isoformat(), "who": who, "act": act, "project": place.project,
        "about": "/".join(filter(None, (place.kind, place.name))), "submission": submission, "words": words,
    }  # fmt: skip
    connection.execute(_NOTE, row)


def revise(connection: Connection, submission: Submission, whole: Workload) -> None:
    row = {
        "submission": submission.id, "cluster": submission.cluster, **submission.place._asdict(),
        "at": submission.at.isoformat(), "workload": msgspec.json.encode(whole).decode(),
    }  # fmt: skip
    connection.execute(_REVISE, row)


class Vouched(NamedTuple):
    """Who vouches for what was submitted."""

    version: str
    commit: str
    builder: str
    reviewers: str
    attestation: str
    """In which words, and by whom they are signed; as JSON."""


def vouch(connection: Connection, submission: Submission, vouched: Vouched) -> None:
    connection.execute(builds.insert().values(submission=submission.id, **vouched._asdict()))


def deployed(connection: Connection, project: str, name: str) -> tuple[Kept, Vouched | None] | None:
    """What a workload was last deployed as, and who vouched for that."""
    asked = _SOUGHT.where(
        submissions.c.project == project, submissions.c.name == name, submissions.c.verb.in_((DEPLOY, BREAK_GLASS)),
        ~sql.exists().where(decisions.c.submission == submissions.c.id, decisions.c.accepted.is_(False)),
    )  # fmt: skip
    # It may have been scaled ten thousand times since.
    found = _kept(connection, asked.order_by(submissions.c.number.desc()).limit(1))
    if found is None:
        return None
    row = connection.execute(builds.select().where(builds.c.submission == found.id)).mappings().first()
    return found, Vouched(**{field: row[field] for field in Vouched._fields}) if row else None


def reviewed(connection: Connection, project: str, name: str, version: str, by: int) -> list[Workload]:
    """As what it was accepted, each time that so many at least were found to have reviewed it."""
    asked = _accepted(project, name, DEPLOY).add_columns(builds.c.reviewers)
    asked = asked.join(builds, builds.c.submission == revisions.c.submission).where(builds.c.version == version)
    found = [(row, [each for each in row.reviewers.split(", ") if each]) for row in connection.execute(asked)]
    return [_whole(row) for row, reviewers in found if len(reviewers) >= by]


def let_in(connection: Connection, project: str, name: str) -> list[Workload]:
    """As what it was accepted, each time that the glass was broken for it."""
    return [_whole(row) for row in connection.execute(_accepted(project, name, BREAK_GLASS))]


def _accepted(project: str, name: str, verb: str) -> sql.Select[Any, Any]:
    asked = sql.select(revisions.c.kind, revisions.c.workload)
    asked = asked.join(submissions, submissions.c.id == revisions.c.submission)
    return asked.where(submissions.c.project == project, submissions.c.name == name, submissions.c.verb == verb)


def _whole(row: sql.Row[Any, Any]) -> Workload:
    return msgspec.json.decode(row.workload, type=WORKLOADS[row.kind])


def keyed(connection: Connection, project: str, who: str, key: str) -> Kept | None:
    """What was submitted under this key."""
    if not key:
        return None
    where = (submissions.c.project == project, submissions.c.who == who, submissions.c.key == key)
    return _kept(connection, _SOUGHT.where(*where))


def named(connection: Connection, project: str, id_: str) -> Kept | None:
    return _kept(connection, _SOUGHT.where(submissions.c.project == project, submissions.c.id == id_))


def _kept(connection: Connection, asked: sql.Select[Any, Any]) -> Kept | None:
    row = connection.execute(asked).mappings().first()
    if row is None:
        return None
    # The desk comes before the platform in the alphabet, too.
    asked = decisions.select().where(decisions.c.submission == row["id"]).order_by(decisions.c.judge)
    decided = tuple(
        Decision(Judge(each.judge), datetime.fromisoformat(each.at), each.accepted, each.rule, each.words)
        for each in connection.execute(asked)
    )
    place = Place(row["project"], row["kind"], row["name"])
    return Kept(
        row["id"], row["at"], row["who"], place, row["verb"], row["digest"], decided,
        row["attempts"] or 0, row["last_error"] or "",
    )  # fmt: skip

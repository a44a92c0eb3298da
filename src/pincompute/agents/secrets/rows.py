"""Reads and writes of single secrets in a transaction: rows, grants, versions and audit entries."""

from __future__ import annotations

from typing import Any, NamedTuple

import sqlalchemy as sql

from pincompute.agents.secrets.tables import audit, grants, reads, secrets, versions
from pincompute.api.secret import SecretGrant, SecretReader, SecretVersion, VersionState
from pincompute.base.database import Connection
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import SECRET_UNKNOWN


class SecretRow(NamedTuple):
    number: int
    project: str
    project_uid: str
    name: str


class Act(NamedTuple):
    """An entry of the audit log, without its time."""

    caller: str
    act: str
    version: int = 0
    note: str = ""


def find_secret(connection: Connection, project: str, project_uid: str, name: str) -> SecretRow | None:
    found = sql.and_(secrets.c.project_uid == project_uid, secrets.c.name == name)
    row = connection.execute(secrets.select().where(found)).first()
    return SecretRow(row.number, project, project_uid, name) if row else None


def require_secret(connection: Connection, project: str, project_uid: str, name: str) -> SecretRow:
    if found := find_secret(connection, project, project_uid, name):
        return found
    what = f"no secret '{name}' in project {project}"
    raise Refused(Problem(SECRET_UNKNOWN, what, next=f"pin secret list --project {project}"))


def list_versions(connection: Connection, secret: SecretRow) -> list[SecretVersion]:
    """Newest first."""
    columns = versions.c
    select = sql.select(columns.number, columns.state, columns.created_at, columns.created_by, columns.bytes)
    rows = connection.execute(select.where(columns.secret == secret.number).order_by(columns.number.desc()))
    return [
        SecretVersion(
            number=row.number,
            state=VersionState(row.state),
            created_at=row.created_at,
            created_by=row.created_by,
            bytes=row.bytes,
        )
        for row in rows
    ]


def list_grants(connection: Connection, secret: SecretRow) -> list[SecretGrant]:
    columns = grants.c
    select = sql.select(columns.grantee, columns.granted_at, columns.granted_by).order_by(columns.grantee)
    rows = connection.execute(select.where(columns.secret == secret.number))
    return [SecretGrant(**row._asdict()) for row in rows]


def list_readers(connection: Connection, secret: SecretRow, limit: int) -> list[SecretReader]:
    columns = reads.c
    select = sql.select(columns.reader, columns.version, columns.last_read_at).where(columns.secret == secret.number)
    rows = connection.execute(select.order_by(columns.last_read_at.desc(), columns.reader).limit(limit))
    return [SecretReader(**row._asdict()) for row in rows]


def is_granted(connection: Connection, secret: SecretRow, grantees: list[str]) -> bool:
    found = sql.and_(grants.c.secret == secret.number, grants.c.grantee.in_(grantees))
    return connection.execute(sql.select(grants.c.grantee).where(found).limit(1)).first() is not None


def served_version(connection: Connection, secret: SecretRow, number: int) -> int:
    """The primary version for 0; the given one if it is not inactive. 0 if there is none."""
    columns = versions.c
    wanted = columns.state == VersionState.PRIMARY if not number else columns.number == number
    found = sql.and_(columns.secret == secret.number, wanted, columns.state != VersionState.INACTIVE)
    row = connection.execute(sql.select(columns.number).where(found)).first()
    return int(row.number) if row else 0


def set_state(connection: Connection, secret: SecretRow, number: int, state: VersionState) -> None:
    """A new primary version makes the previous one active."""
    of_secret = versions.c.secret == secret.number
    if state is VersionState.PRIMARY:
        former = sql.and_(of_secret, versions.c.state == VersionState.PRIMARY)
        connection.execute(versions.update().where(former).values(state=str(VersionState.ACTIVE)))
    one = sql.and_(of_secret, versions.c.number == number)
    connection.execute(versions.update().where(one).values(state=str(state)))


def record(connection: Connection, secret: SecretRow, act: Act, at: str) -> None:
    """Adds an entry to the audit log."""
    values: dict[str, Any] = {
        "at": at, "caller": act.caller, "act": act.act, "project_uid": secret.project_uid, "project": secret.project,
        "name": secret.name, "version": act.version, "note": act.note,
    }  # fmt: skip
    connection.execute(audit.insert().values(**values))


def record_read(connection: Connection, secret: SecretRow, act: Act, at: str, repeated_since: str) -> None:
    """Records a read. One that the same reader repeats soon is not another entry: a loop must not fill the log."""
    columns = reads.c
    same = sql.and_(columns.secret == secret.number, columns.reader == act.caller, columns.version == act.version)
    before = connection.execute(sql.select(columns.last_read_at).where(same)).first()
    if before is None:
        values = {"secret": secret.number, "reader": act.caller, "version": act.version, "last_read_at": at}
        connection.execute(reads.insert().values(**values))
    elif before.last_read_at > repeated_since:
        return
    else:
        connection.execute(reads.update().where(same).values(last_read_at=at))
    record(connection, secret, act, at)

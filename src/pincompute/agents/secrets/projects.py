"""Projects by uid: the secrets of a deleted project do not belong to a new one of the same name."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sql

from pincompute.agents.callers import Caller
from pincompute.agents.secrets.tables import projects, secrets
from pincompute.api.structs import LenientStruct, Metadata
from pincompute.base.database import Connection


class Namespace(LenientStruct, frozen=True):
    """The fields of a namespace that identify it."""

    metadata: Metadata


class KnownProject(NamedTuple):
    uid: str
    created_at: str

    def issued(self, caller: Caller) -> bool:
        """Whether a certificate can be of this project, and not of a former one of the same name."""
        return caller.issued_at is None or caller.issued_at >= datetime.fromisoformat(self.created_at)


def read_projects(connection: Connection) -> dict[str, KnownProject]:
    return {row.name: KnownProject(row.uid, row.created_at) for row in connection.execute(projects.select())}


def record_project(connection: Connection, name: str, known: KnownProject) -> None:
    connection.execute(projects.delete().where(projects.c.name == name))
    connection.execute(projects.insert().values(name=name, **known._asdict()))


def remove_project(connection: Connection, name: str, uid: str) -> None:
    """Removes the project with this uid, and its secrets. Called only for a deletion that was observed."""
    connection.execute(projects.delete().where(sql.and_(projects.c.name == name, projects.c.uid == uid)))
    connection.execute(secrets.delete().where(secrets.c.project_uid == uid))

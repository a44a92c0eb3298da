"""The record of truth: who submitted what, when, and what became of it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from pincompute.submission.database import Connection, Database
from pincompute.submission.tables import decisions, submissions


class Outcome(StrEnum):
    RECEIVED = "received"
    WRITTEN = "written"
    REFUSED = "refused"


class Submission(NamedTuple):
    id: str
    at: datetime
    project: str
    kind: str
    name: str
    verb: str
    document: str


class Record:
    """What is acknowledged is on disk."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def close(self) -> None:
        await self._database.close()

    async def receive(self, submission: Submission) -> None:
        """Written before anything is done, so that nothing is ever done that is not on record."""
        row = {**submission._asdict(), "at": submission.at.isoformat(), "who": "", "cluster": "", "digest": ""}
        await self._database.do(lambda connection: connection.execute(submissions.insert().values(row)))

    async def conclude(self, id_: str, outcome: Outcome, said: str = "") -> None:
        row = {"submission": id_, "judge": "desk", "at": "", "rule": outcome, "words": said}
        accepted = outcome is Outcome.WRITTEN
        await self._database.do(
            lambda connection: connection.execute(decisions.insert().values(row | {"accepted": accepted}))
        )

    async def outcomes(self, project: str, name: str) -> list[tuple[str, Outcome, str]]:
        """Every submission of one workload, oldest first: id, outcome, and what was said of it."""

        def read(connection: Connection) -> list[tuple[str, Outcome, str]]:
            found = (
                submissions.outerjoin(decisions)
                .select()
                .where(submissions.c.project == project, submissions.c.name == name)
                .order_by(submissions.c.number)
            )
            rows = connection.execute(found).mappings()
            return [(row["id"], Outcome(row["rule"] or "received"), row["words"] or "") for row in rows]

        return await self._database.do(read)

"""The record of truth: who submitted what, when, and what became of it."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

_TABLE = """
CREATE TABLE IF NOT EXISTS submissions (
    id       TEXT PRIMARY KEY,
    at       TEXT NOT NULL,
    project  TEXT NOT NULL,
    kind     TEXT NOT NULL,
    name     TEXT NOT NULL,
    document TEXT NOT NULL,
    outcome  TEXT NOT NULL,
    said     TEXT NOT NULL DEFAULT ''
) STRICT
"""


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
    document: str


class Record:
    """SQLite; what is acknowledged is on disk."""

    def __init__(self, file: Path) -> None:
        self._database = sqlite3.connect(file, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.execute(_TABLE)

    def close(self) -> None:
        self._database.close()

    def receive(self, submission: Submission) -> None:
        """Written before anything is done, so that nothing is ever done that is not on record."""
        self._database.execute(
            "INSERT INTO submissions (id, at, project, kind, name, document, outcome) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                submission.id,
                submission.at.isoformat(),
                submission.project,
                submission.kind,
                submission.name,
                submission.document,
                Outcome.RECEIVED,
            ),
        )

    def conclude(self, id_: str, outcome: Outcome, said: str = "") -> None:
        self._database.execute("UPDATE submissions SET outcome = ?, said = ? WHERE id = ?", (outcome, said, id_))

    def outcomes(self, project: str, name: str) -> list[tuple[str, Outcome, str]]:
        """Every submission of one workload, oldest first: id, outcome, and what was said of it."""
        rows = self._database.execute(
            "SELECT id, outcome, said FROM submissions WHERE project = ? AND name = ? ORDER BY at, rowid",
            (project, name),
        )
        return [(id_, Outcome(outcome), said) for id_, outcome, said in rows]

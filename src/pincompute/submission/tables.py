"""The tables of the record: one shape for SQLite and for PostgreSQL.

Submissions, decisions, revisions and audit are only ever added to. The ledger and the outbox are what is going on now.
"""

from __future__ import annotations

import sqlalchemy as sql
from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, Table, Text

METADATA = sql.MetaData()

_NUMBER = BigInteger().with_variant(Integer, "sqlite")
"""Only so does SQLite count rows by itself."""
_SUM = sql.Numeric().with_variant(BigInteger, "sqlite")
"""Of many that are as large as may be."""


def _submission() -> Column[str]:
    return Column("submission", Text, ForeignKey("submissions.id"), nullable=False)


projects = Table(
    "projects",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    comment="One row a project that was ever submitted to: whoever takes from its quota holds it meanwhile.",
)

submissions = Table(
    "submissions",
    METADATA,
    Column("number", _NUMBER, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("key", Text),
    Column("who", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("cluster", Text, nullable=False),
    Column("project", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("verb", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("digest", Text, nullable=False),
    sql.UniqueConstraint("project", "who", "key", name="submissions_key"),
    Index("submissions_of", "project", "name"),
    comment="What was asked of the desk, by whom: word by word, and by the key under which it may be asked again.",
)

decisions = Table(
    "decisions",
    METADATA,
    Column("submission", Text, ForeignKey("submissions.id"), primary_key=True),
    Column("judge", Text, primary_key=True),
    Column("at", Text, nullable=False),
    Column("accepted", Boolean, nullable=False),
    Column("rule", Text, nullable=False),
    Column("words", Text, nullable=False),
    comment="What became of a submission: first at the desk, and where that accepted it, then at its platform.",
)

revisions = Table(
    "revisions",
    METADATA,
    Column("submission", Text, ForeignKey("submissions.id"), primary_key=True),
    Column("cluster", Text, nullable=False),
    Column("project", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("workload", Text, nullable=False),
    Index("revisions_of", "cluster", "project", "kind", "name"),
    comment="What a workload was accepted as, whole.",
)

builds = Table(
    "builds",
    METADATA,
    Column("submission", Text, ForeignKey("submissions.id"), primary_key=True),
    Column("version", Text, nullable=False),
    Column("commit", Text, nullable=False),
    Column("builder", Text, nullable=False),
    Column("reviewers", Text, nullable=False),
    Column("attestation", Text, nullable=False),
    comment="Who vouched for what was accepted: the signed words themselves, and what they were found to say.",
)

ledger = Table(
    "ledger",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("project", Text, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("submission", Text, primary_key=True),
    Column("tier", Text, nullable=False),
    Column("cpu", BigInteger, nullable=False),
    Column("memory", BigInteger, nullable=False),
    Column("gpus", BigInteger, nullable=False),
    Column("pods", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("written", BigInteger),
    Index(
        "ledger_unsettled",
        "cluster",
        "project",
        "kind",
        "name",
        sqlite_where=sql.text("written IS NOT NULL"),
        postgresql_where=sql.text("written IS NOT NULL"),
    ),
    comment="What a workload holds of its project's quota: as it stands, and as each submission on its way wants it.",
)

sums = Table(
    "sums",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("project", Text, primary_key=True),
    Column("tier", Text, primary_key=True),
    Column("cpu", _SUM, nullable=False),
    Column("memory", _SUM, nullable=False),
    Column("gpus", _SUM, nullable=False),
    Column("pods", _SUM, nullable=False),
    Column("bytes", _SUM, nullable=False),
    comment="What the rows of the ledger add up to; the database itself keeps it so.",
)

outbox = Table(
    "outbox",
    METADATA,
    Column("number", _NUMBER, primary_key=True),
    _submission(),
    Column("cluster", Text, nullable=False),
    Column("project", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("last_error", Text, nullable=False, server_default=""),
    Column("done_at", Text),
    Index("outbox_open", "cluster", "number", sqlite_where=sql.text("done_at IS NULL"),
          postgresql_where=sql.text("done_at IS NULL")),
    Index("outbox_pending", "cluster", "project", "name", sqlite_where=sql.text("done_at IS NULL"),
          postgresql_where=sql.text("done_at IS NULL")),
    sql.UniqueConstraint("submission", name="outbox_submission"),
    comment="What was accepted and must reach its platform, in this order for each workload.",
)  # fmt: skip

audit = Table(
    "audit",
    METADATA,
    Column("number", _NUMBER, primary_key=True),
    Column("at", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("act", Text, nullable=False),
    Column("project", Text, nullable=False),
    Column("about", Text, nullable=False),
    Column("submission", Text, nullable=False),
    Column("words", Text, nullable=False),
    comment="Who did what: never changed, never removed.",
)

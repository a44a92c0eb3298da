"""The tables: the same for SQLite and PostgreSQL.

Rows of submissions, decisions, revisions, builds and audit are only ever added. Those of the ledger and the outbox are
the present state, and those of sessions and sign-in links are deleted once they have ended.
"""

from __future__ import annotations

import sqlalchemy as sql
from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, Table, Text

from pincompute.planning.object_quota import OBJECT_RESOURCES

METADATA = sql.MetaData()

_NUMBER = BigInteger().with_variant(Integer, "sqlite")
"""SQLite numbers rows by itself only in a column of type INTEGER."""
_SUM = sql.Numeric().with_variant(BigInteger, "sqlite")
"""A sum of values of the largest integer type."""


def _submission() -> Column[str]:
    return Column("submission", Text, ForeignKey("submissions.id"), nullable=False)


projects = Table(
    "projects",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    comment="One row for each project with submissions: its lock guards the project's quota.",
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
    comment="Requests to the desk with their callers, documents and idempotency keys.",
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
    comment="Decisions on submissions: of the desk, and of the platform if the desk has accepted.",
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
    comment="Complete workloads, as they were accepted.",
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
    comment="The verified builds of submissions: the signed statement, and what was verified.",
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
    *(Column(each, BigInteger, nullable=False, server_default="0") for each in OBJECT_RESOURCES),
    Index(
        "ledger_unsettled",
        "cluster",
        "project",
        "kind",
        "name",
        sqlite_where=sql.text("written IS NOT NULL"),
        postgresql_where=sql.text("written IS NOT NULL"),
    ),
    comment="The quota that each workload holds: in its current state, and for each undelivered submission.",
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
    *(Column(each, _SUM, nullable=False, server_default="0") for each in OBJECT_RESOURCES),
    comment="Sums of the ledger's rows, kept by triggers.",
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
    comment="Accepted commands that must reach their platform, in this order for each workload.",
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
    Index("audit_of", "project", "number"),
    comment="The audit log. Triggers prevent changes and deletions.",
)

sessions = Table(
    "sessions",
    METADATA,
    Column("digest", Text, primary_key=True),
    Column("who", Text, nullable=False),
    Column("identity", Text, nullable=False),
    Column("created_s", BigInteger, nullable=False),
    Column("used_s", BigInteger, nullable=False),
    Column("expires_s", BigInteger, nullable=False),
    Index("sessions_of", "who"),
    comment="Signed-in browsers: a digest of each cookie, and its identity. Times are Unix times.",
)

sign_in_links = Table(
    "sign_in_links",
    METADATA,
    Column("digest", Text, primary_key=True),
    Column("who", Text, nullable=False),
    Column("identity", Text, nullable=False),
    Column("expires_s", BigInteger, nullable=False),
    Index("sign_in_links_of", "who"),
    comment="One-time links that were not opened yet: a digest of each code, and the identity that it signs in.",
)

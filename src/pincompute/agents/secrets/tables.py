"""The tables of the secret store, the same for SQLite and PostgreSQL. No column holds a value in clear."""

from __future__ import annotations

import sqlalchemy as sql
from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, LargeBinary, Table, Text

METADATA = sql.MetaData()

_NUMBER = BigInteger().with_variant(Integer, "sqlite")
"""SQLite numbers rows by itself only in a column of type INTEGER."""

projects = Table(
    "projects",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("uid", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    comment="Projects as last observed in the cluster, so that the store serves while the cluster is unreachable.",
)

secrets = Table(
    "secrets",
    METADATA,
    Column("number", _NUMBER, primary_key=True),
    Column("project_uid", Text, nullable=False),
    Column("name", Text, nullable=False),
    sql.UniqueConstraint("project_uid", "name", name="secrets_name"),
    comment="Secrets by the uid of their project: a new project of the same name does not get those of the former.",
)

versions = Table(
    "versions",
    METADATA,
    Column("secret", _NUMBER, ForeignKey("secrets.number", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("state", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("bytes", Integer, nullable=False),
    Column("key_id", Text, nullable=False),
    Column("wrapped_key", LargeBinary, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    comment="Encrypted values, each with its own data key, which is wrapped by the key provider.",
)

grants = Table(
    "grants",
    METADATA,
    Column("secret", _NUMBER, ForeignKey("secrets.number", ondelete="CASCADE"), primary_key=True),
    Column("grantee", Text, primary_key=True),
    Column("granted_at", Text, nullable=False),
    Column("granted_by", Text, nullable=False),
    comment="Who may have a secret: projects, workloads, people and groups.",
)

reads = Table(
    "reads",
    METADATA,
    Column("secret", _NUMBER, ForeignKey("secrets.number", ondelete="CASCADE"), primary_key=True),
    Column("reader", Text, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("last_read_at", Text, nullable=False),
    comment="The last read of each version by each reader.",
)

audit = Table(
    "audit",
    METADATA,
    Column("number", _NUMBER, primary_key=True),
    Column("at", Text, nullable=False),
    Column("caller", Text, nullable=False),
    Column("act", Text, nullable=False),
    Column("project_uid", Text, nullable=False),
    Column("project", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("note", Text, nullable=False),
    Index("audit_of", "project_uid", "name", "number"),
    comment="Every read and change, never with a value. Entries are never changed; old ones of reads are removed.",
)


def create_tables(connection: sql.Connection) -> None:
    METADATA.create_all(connection)

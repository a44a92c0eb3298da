"""Creates the tables; takes over the submissions of the first desk, which had one table of them."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sql
from alembic import op

revision = "0001"
down_revision = None

_NUMBER = sql.BigInteger().with_variant(sql.Integer, "sqlite")
_OPEN = sql.text("done_at IS NULL")


def upgrade() -> None:
    former = "submissions" in sql.inspect(op.get_bind()).get_table_names()
    if former:
        op.rename_table("submissions", "former")
    _create_tables()
    _make_append_only("audit")
    if former:
        _copy_former_submissions()
        op.drop_table("former")


def _create_tables() -> None:
    _table(
        "projects",
        "One row for each project with submissions: its lock guards the project's quota.",
        *(sql.Column(name, sql.Text, primary_key=True) for name in ("cluster", "name")),
    )
    _table(
        "submissions",
        "Requests to the desk with their callers, documents and idempotency keys.",
        sql.Column("number", _NUMBER, primary_key=True),
        sql.Column("id", sql.Text, nullable=False, unique=True),
        sql.Column("key", sql.Text),
        *_texts("who", "at", "cluster", "project", "kind", "name", "verb", "document", "digest"),
        sql.UniqueConstraint("project", "who", "key", name="submissions_key"),
    )
    op.create_index("submissions_of", "submissions", ["project", "name"])
    _table(
        "decisions",
        "Decisions on submissions: of the desk, and of the platform if the desk has accepted.",
        sql.Column("submission", sql.Text, sql.ForeignKey("submissions.id"), primary_key=True),
        sql.Column("judge", sql.Text, primary_key=True),
        *_texts("at"),
        sql.Column("accepted", sql.Boolean, nullable=False),
        *_texts("rule", "words"),
    )
    _table(
        "revisions",
        "Complete workloads, as they were accepted.",
        sql.Column("submission", sql.Text, sql.ForeignKey("submissions.id"), primary_key=True),
        *_texts("cluster", "project", "kind", "name", "at", "workload"),
    )
    op.create_index("revisions_of", "revisions", ["cluster", "project", "kind", "name"])
    _table(
        "ledger",
        "The quota that each workload holds: in its current state, and for each undelivered submission.",
        *(
            sql.Column(name, sql.Text, primary_key=True)
            for name in ("cluster", "project", "kind", "name", "submission")
        ),
        *_texts("tier"),
        *(sql.Column(name, sql.BigInteger, nullable=False) for name in ("cpu", "memory", "gpus", "pods", "bytes")),
        sql.Column("written", sql.BigInteger),
    )
    _table(
        "outbox",
        "Accepted commands that must reach their platform, in this order for each workload.",
        sql.Column("number", _NUMBER, primary_key=True),
        sql.Column("submission", sql.Text, sql.ForeignKey("submissions.id"), nullable=False),
        *_texts("cluster", "project", "kind", "name", "payload"),
        sql.Column("attempts", sql.Integer, nullable=False, server_default="0"),
        sql.Column("last_error", sql.Text, nullable=False, server_default=""),
        sql.Column("done_at", sql.Text),
        sql.UniqueConstraint("submission", name="outbox_submission"),
    )
    op.create_index("outbox_open", "outbox", ["cluster", "number"], sqlite_where=_OPEN, postgresql_where=_OPEN)
    _table(
        "audit",
        "The audit log. Triggers prevent changes and deletions.",
        sql.Column("number", _NUMBER, primary_key=True),
        *_texts("at", "who", "act", "project", "about", "submission", "words"),
    )


def _table(name: str, comment: str, *parts: Any) -> None:
    op.create_table(name, *parts, comment=comment)


def _texts(*names: str) -> list[Any]:
    return [sql.Column(name, sql.Text, nullable=False) for name in names]


def _make_append_only(table: str) -> None:
    """Triggers refuse every other statement, whichever client sends it."""
    if op.get_context().dialect.name == "sqlite":
        for verb in ("UPDATE", "DELETE"):
            refuse = f"SELECT RAISE(ABORT, '{table} is only ever added to')"
            op.execute(f"CREATE TRIGGER {table}_{verb.lower()} BEFORE {verb} ON {table} BEGIN {refuse}; END")
        return
    refuse = f"RAISE EXCEPTION '{table} is only ever added to'"
    op.execute(
        f"CREATE FUNCTION {table}_is_kept() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {refuse}; END $$"
    )  # fmt: skip
    op.execute(
        f"CREATE TRIGGER {table}_is_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}"
        f" FOR EACH STATEMENT EXECUTE FUNCTION {table}_is_kept()"
    )


def _copy_former_submissions() -> None:
    """The first desk did not record callers; it had one user, the owner of the platform."""
    op.execute(
        "INSERT INTO submissions (id, who, at, cluster, project, kind, name, verb, document, digest)"
        " SELECT id, 'somebody', at, 'main', project, kind, name, 'deploy', document, '' FROM former ORDER BY at"
    )
    # A submission without an outcome was interrupted: whether it reached the cluster is unknown, and it was never
    # acknowledged, so it counts as refused.
    op.execute(
        "INSERT INTO decisions (submission, judge, at, accepted, rule, words)"
        " SELECT id, 'desk', at, outcome = 'written', outcome, said FROM former"
    )

"""The record; of a file of the first desk, which kept submissions alone, everything is taken over."""

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
    _tables()
    _only_added_to("audit")
    if former:
        _take_over()
        op.drop_table("former")


def _tables() -> None:
    _table(
        "projects",
        "One row a project that was ever submitted to: whoever takes from its quota holds it meanwhile.",
        *(sql.Column(name, sql.Text, primary_key=True) for name in ("cluster", "name")),
    )
    _table(
        "submissions",
        "What was asked of the desk, by whom: word by word, and by the key under which it may be asked again.",
        sql.Column("number", _NUMBER, primary_key=True),
        sql.Column("id", sql.Text, nullable=False, unique=True),
        sql.Column("key", sql.Text),
        *_texts("who", "at", "cluster", "project", "kind", "name", "verb", "document", "digest"),
        sql.UniqueConstraint("project", "who", "key", name="submissions_key"),
    )
    op.create_index("submissions_of", "submissions", ["project", "name"])
    _table(
        "decisions",
        "What became of a submission: first at the desk, and where that accepted it, then at its platform.",
        sql.Column("submission", sql.Text, sql.ForeignKey("submissions.id"), primary_key=True),
        sql.Column("judge", sql.Text, primary_key=True),
        *_texts("at"),
        sql.Column("accepted", sql.Boolean, nullable=False),
        *_texts("rule", "words"),
    )
    _table(
        "revisions",
        "What a workload was accepted as, whole.",
        sql.Column("submission", sql.Text, sql.ForeignKey("submissions.id"), primary_key=True),
        *_texts("cluster", "project", "kind", "name", "at", "workload"),
    )
    op.create_index("revisions_of", "revisions", ["cluster", "project", "kind", "name"])
    _table(
        "ledger",
        "What a workload holds of its project's quota: as it stands, and as each submission on its way wants it.",
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
        "What was accepted and must reach its platform, in this order for each workload.",
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
        "Who did what: never changed, never removed.",
        sql.Column("number", _NUMBER, primary_key=True),
        *_texts("at", "who", "act", "project", "about", "submission", "words"),
    )


def _table(name: str, comment: str, *parts: Any) -> None:
    op.create_table(name, *parts, comment=comment)


def _texts(*names: str) -> list[Any]:
    return [sql.Column(name, sql.Text, nullable=False) for name in names]


def _only_added_to(table: str) -> None:
    """The database itself refuses everything else, whoever asks."""
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


def _take_over() -> None:
    """Who had asked was not noted, and everybody was the one whose platform it was."""
    op.execute(
        "INSERT INTO submissions (id, who, at, cluster, project, kind, name, verb, document, digest)"
        " SELECT id, 'somebody', at, 'main', project, kind, name, 'deploy', document, '' FROM former ORDER BY at"
    )
    # What was received and not concluded was cut off: whether it arrived is not known, and its answer never came.
    op.execute(
        "INSERT INTO decisions (submission, judge, at, accepted, rule, words)"
        " SELECT id, 'desk', at, outcome = 'written', outcome, said FROM former"
    )

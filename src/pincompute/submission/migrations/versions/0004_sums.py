"""What a project has in use is known at once, however many workloads it has: the database adds up the ledger itself."""

from __future__ import annotations

import sqlalchemy as sql
from alembic import op

revision = "0004"
down_revision = "0003"

_OF = ("cluster", "project", "tier")
_COUNTED = ("cpu", "memory", "gpus", "pods", "bytes")
_SUM = sql.Numeric().with_variant(sql.BigInteger, "sqlite")


def upgrade() -> None:
    op.create_table(
        "sums",
        *(sql.Column(name, sql.Text, primary_key=True) for name in _OF),
        *(sql.Column(name, _SUM, nullable=False) for name in _COUNTED),
        comment="What the rows of the ledger add up to; the database itself keeps it so.",
    )
    added = ", ".join(f"sum({name})" for name in _COUNTED)
    op.execute(f"INSERT INTO sums SELECT {', '.join(_OF)}, {added} FROM ledger GROUP BY {', '.join(_OF)}")  # noqa: S608  (names of ours)
    _kept_by_the_database()


def _kept_by_the_database() -> None:
    """Rows of the ledger come and go, and never change in what they count."""
    steps = {"INSERT": f"{_more('NEW')};", "DELETE": f"{_less('OLD')};"}
    if op.get_context().dialect.name == "sqlite":
        for verb, step in steps.items():
            op.execute(f"CREATE TRIGGER sums_{verb.lower()} AFTER {verb} ON ledger BEGIN {step} END")
        return
    for verb, step in steps.items():
        name = f"sums_{verb.lower()}"
        op.execute(
            f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {step} RETURN NULL; END $$"
        )  # fmt: skip
        op.execute(f"CREATE TRIGGER {name} AFTER {verb} ON ledger FOR EACH ROW EXECUTE FUNCTION {name}()")


def _more(row: str) -> str:
    values = ", ".join(f"{row}.{name}" for name in (*_OF, *_COUNTED))
    changed = ", ".join(f"{name} = sums.{name} + excluded.{name}" for name in _COUNTED)
    return f"INSERT INTO sums VALUES ({values}) ON CONFLICT ({', '.join(_OF)}) DO UPDATE SET {changed}"  # noqa: S608  (names of ours)


def _less(row: str) -> str:
    changed = ", ".join(f"{name} = {name} - {row}.{name}" for name in _COUNTED)
    where = " AND ".join(f"{name} = {row}.{name}" for name in _OF)
    return f"UPDATE sums SET {changed} WHERE {where}"  # noqa: S608  (names of ours)

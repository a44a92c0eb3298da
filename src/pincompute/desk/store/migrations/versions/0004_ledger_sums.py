"""Adds sums of the ledger, kept by triggers: a project's usage is one row, however many workloads it has."""

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
        comment="Sums of the ledger's rows, kept by triggers.",
    )
    added = ", ".join(f"sum({name})" for name in _COUNTED)
    op.execute(f"INSERT INTO sums SELECT {', '.join(_OF)}, {added} FROM ledger GROUP BY {', '.join(_OF)}")  # noqa: S608  (names of ours)
    _create_triggers()


def _create_triggers() -> None:
    """On insert and delete only: the counted columns of a row are never updated."""
    steps = {"INSERT": f"{_add_row('NEW')};", "DELETE": f"{_subtract_row('OLD')};"}
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


def _add_row(row: str) -> str:
    values = ", ".join(f"{row}.{name}" for name in (*_OF, *_COUNTED))
    changed = ", ".join(f"{name} = sums.{name} + excluded.{name}" for name in _COUNTED)
    return f"INSERT INTO sums VALUES ({values}) ON CONFLICT ({', '.join(_OF)}) DO UPDATE SET {changed}"  # noqa: S608  (names of ours)


def _subtract_row(row: str) -> str:
    changed = ", ".join(f"{name} = {name} - {row}.{name}" for name in _COUNTED)
    where = " AND ".join(f"{name} = {row}.{name}" for name in _OF)
    return f"UPDATE sums SET {changed} WHERE {where}"  # noqa: S608  (names of ours)

"""Adds the objects and the storage of workloads to the ledger and its sums. Rows of earlier versions have none."""

from __future__ import annotations

import sqlalchemy as sql
from alembic import op

revision = "0006"
down_revision = "0005"

_OF = ("cluster", "project", "tier")
_ADDED = ("storage", "config_maps", "services", "service_accounts", "claims", "jobs", "cron_jobs", "ingresses")
_COUNTED = ("cpu", "memory", "gpus", "pods", "bytes", *_ADDED)
_SUM = sql.Numeric().with_variant(sql.BigInteger, "sqlite")


def upgrade() -> None:
    for name in _ADDED:
        op.add_column("ledger", sql.Column(name, sql.BigInteger, nullable=False, server_default="0"))
        op.add_column("sums", sql.Column(name, _SUM, nullable=False, server_default="0"))
    steps = {"INSERT": f"{_add_row('NEW')};", "DELETE": f"{_subtract_row('OLD')};"}
    is_sqlite = op.get_context().dialect.name == "sqlite"
    for verb, step in steps.items():
        name = f"sums_{verb.lower()}"
        if is_sqlite:
            op.execute(f"DROP TRIGGER {name}")
            op.execute(f"CREATE TRIGGER {name} AFTER {verb} ON ledger BEGIN {step} END")
        else:
            op.execute(
                f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql"
                f" AS $$ BEGIN {step} RETURN NULL; END $$"
            )


def _add_row(row: str) -> str:
    columns, key = ", ".join((*_OF, *_COUNTED)), ", ".join(_OF)
    values = ", ".join(f"{row}.{name}" for name in (*_OF, *_COUNTED))
    changed = ", ".join(f"{name} = sums.{name} + excluded.{name}" for name in _COUNTED)
    return f"INSERT INTO sums ({columns}) VALUES ({values}) ON CONFLICT ({key}) DO UPDATE SET {changed}"  # noqa: S608  (names of ours)


def _subtract_row(row: str) -> str:
    changed = ", ".join(f"{name} = {name} - {row}.{name}" for name in _COUNTED)
    where = " AND ".join(f"{name} = {row}.{name}" for name in _OF)
    return f"UPDATE sums SET {changed} WHERE {where}"  # noqa: S608  (names of ours)

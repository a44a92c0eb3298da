"""Adds an index for writes that the platform has not shown yet."""

from __future__ import annotations

import sqlalchemy as sql
from alembic import op

revision = "0005"
down_revision = "0004"

_WRITTEN = sql.text("written IS NOT NULL")


def upgrade() -> None:
    columns = ["cluster", "project", "kind", "name"]
    op.create_index("ledger_unsettled", "ledger", columns, sqlite_where=_WRITTEN, postgresql_where=_WRITTEN)

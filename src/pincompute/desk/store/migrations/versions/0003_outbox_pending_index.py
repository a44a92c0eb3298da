"""Adds an index for the undelivered entries of one workload."""

from __future__ import annotations

import sqlalchemy as sql
from alembic import op

revision = "0003"
down_revision = "0002"

_OPEN = sql.text("done_at IS NULL")


def upgrade() -> None:
    columns = ["cluster", "project", "name"]
    op.create_index("outbox_pending", "outbox", columns, sqlite_where=_OPEN, postgresql_where=_OPEN)

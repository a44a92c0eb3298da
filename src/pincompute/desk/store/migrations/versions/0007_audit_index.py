"""Adds an index for the audit log of a project: without it a page of a small project would read the log of all."""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_index("audit_of", "audit", ["project", "number"])

"""Adds the verified builds of submissions."""

from __future__ import annotations

import sqlalchemy as sql
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "builds",
        sql.Column("submission", sql.Text, sql.ForeignKey("submissions.id"), primary_key=True),
        *(
            sql.Column(name, sql.Text, nullable=False)
            for name in ("version", "commit", "builder", "reviewers", "attestation")
        ),
        comment="The verified builds of submissions: the signed statement, and what was verified.",
    )

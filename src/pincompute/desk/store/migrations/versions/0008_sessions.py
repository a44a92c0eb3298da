"""Adds the sessions of browsers, and the one-time links that begin them."""

from __future__ import annotations

import sqlalchemy as sql
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    texts = [sql.Column(name, sql.Text, nullable=False) for name in ("who", "identity")]
    times = [sql.Column(name, sql.BigInteger, nullable=False) for name in ("created_s", "used_s", "expires_s")]
    op.create_table(
        "sessions",
        sql.Column("digest", sql.Text, primary_key=True),
        *texts,
        *times,
        comment="Signed-in browsers: a digest of each cookie, and its identity. Times are Unix times.",
    )
    op.create_index("sessions_of", "sessions", ["who"])
    op.create_table(
        "sign_in_links",
        sql.Column("digest", sql.Text, primary_key=True),
        sql.Column("who", sql.Text, nullable=False),
        sql.Column("identity", sql.Text, nullable=False),
        sql.Column("expires_s", sql.BigInteger, nullable=False),
        comment="One-time links that were not opened yet: a digest of each code, and the identity that it signs in.",
    )
    op.create_index("sign_in_links_of", "sign_in_links", ["who"])

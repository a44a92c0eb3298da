"""Where Alembic begins: on the connection that it is handed, in the transaction that it finds."""

from __future__ import annotations

from alembic import context

from pincompute.submission.tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
with context.begin_transaction():
    context.run_migrations()

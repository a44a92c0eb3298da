"""Entry point of Alembic: migrates on the given connection, within its transaction."""

from __future__ import annotations

from alembic import context

from pincompute.desk.store.tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
with context.begin_transaction():
    context.run_migrations()
